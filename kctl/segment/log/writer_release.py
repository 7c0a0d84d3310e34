"""Determine which release wrote a log dir, from its meta.properties and from the metadata log beside it.

The last release with ZooKeeper is 3.9; meta.properties of such brokers has version 0. In KRaft, every broker and
controller registers with the levels of metadata.version that it supports (KIP-584, KIP-866). Each node has the
metadata log in one of its log dirs. The finalized metadata.version alone does not suffice: after an upgrade, it keeps
its value until a new level is finalized.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kctl.errors import KctlError
from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import Batch
from kctl.segment.format.checkpoints import META_PROPERTIES, BadCheckpoint, parse_settings
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords
from kctl.segment.format.release import Release
from kctl.segment.log.partition import METADATA_FOLDER, is_kraft_snapshot, list_folder, offset_of
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.walk import batches, content_of

_LAST_LEVEL_3_9 = 21  # MetadataVersion.IBP_3_9_IV0; IBP_4_0_IV0 is 22
_FEATURE = "metadata.version"
# Records that name metadata versions, by frame version and type, and their field with the node's id.
_NODE_FIELDS = {"RegisterBrokerRecord": "brokerId", "RegisterControllerRecord": "controllerId"}
_HEADS = frozenset({b"\x01\x00", b"\x01\x1b", b"\x01\x0c"})  # RegisterBroker, RegisterController, FeatureLevel
_MAX_BYTES = 32 << 20  # of the metadata log; brokers write a snapshot after 20 MiB
_MAX_RECORD_BYTES = 1 << 20


class _Owner(NamedTuple):
    """The node in meta.properties. node_id: None if unknown."""

    kraft: bool
    node_id: int | None


def writer_release(files_folder: Path) -> Release | None:
    """Return the release that wrote a log dir or partition folder: 3.9 before Kafka 4, otherwise 4.4. None: unknown."""
    for folder in (files_folder.absolute(), files_folder.absolute().parent):
        owner = _owner(folder / META_PROPERTIES)
        if owner is not None and not owner.kraft:
            return Release.KAFKA_3_9
        level = _supported_level(folder / METADATA_FOLDER, owner)
        if level is not None:
            return Release.KAFKA_3_9 if level <= _LAST_LEVEL_3_9 else Release.KAFKA_4_4
    return None


def _owner(path: Path) -> _Owner | None:
    try:
        settings = parse_settings(read_whole(path, most_bytes=1 << 20), "=")
    except (KctlError, BadCheckpoint):
        return None
    node_id = settings.get("node.id", "")
    return _Owner(settings.get("version", "0") != "0", int(node_id) if node_id.isdecimal() else None)


def _supported_level(folder: Path, owner: _Owner | None) -> int | None:
    """Return the highest metadata.version that the owner supports, else the finalized or highest one; None: unknown."""
    own: int | None = None
    finalized: int | None = None
    others: int | None = None
    for name, values in _registrations(folder):
        if name == "FeatureLevelRecord":
            finalized = values["featureLevel"] if values["name"] == _FEATURE else finalized
            continue
        levels = [each["maxSupportedVersion"] for each in values["features"] if each["name"] == _FEATURE]
        if levels and owner is not None and values[_NODE_FIELDS[name]] == owner.node_id:
            own = levels[0]
        elif levels:
            others = max(levels[0], others or 0)
    if own is not None:
        return own
    return max((level for level in (finalized, others) if level is not None), default=None)


def _registrations(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield registrations and finalized features in order, from the newest snapshot on."""
    budget = _MAX_BYTES
    for path in _files(folder):
        try:
            with Source(path) as source:
                end = min(source.size, budget)
                budget -= end
                for item in batches(source, 0, end):
                    if isinstance(item, Batch) and not item.control:
                        yield from _registrations_of(source, item)
        except KctlError:
            continue


def _files(folder: Path) -> list[Path]:
    try:
        files = list_folder(folder)
    except KctlError:
        return []
    snapshots = [path for path in files if is_kraft_snapshot(path) and path.name[:1].isdigit()]
    logs = [path for path in files if path.suffix == ".log" and offset_of(path) is not None]
    start = int(snapshots[-1].name[:20]) if snapshots else 0
    first = max((number for number, path in enumerate(logs) if (offset_of(path) or 0) <= start), default=0)
    return [*snapshots[-1:], *logs[first:]]


def _registrations_of(source: Source, batch: Batch) -> Iterator[tuple[str, dict[str, Any]]]:
    from kctl.segment.format.internal_messages import framed  # most dumps have no metadata log beside the files
    from kctl.segment.format.messages import BadMessage

    try:
        content = content_of(source, batch, _MAX_RECORD_BYTES)
        for record in all_records(batch, content, limit=_MAX_RECORD_BYTES):
            if record.value is not None and record.value[:2] in _HEADS:
                part = framed(record.value, Release.KAFKA_4_4, remote=False, lenient=True)
                yield part.definition.name, part.data
    except (BadRecords, BadPayload, BadMessage):
        return
