"""Decode control records: transaction markers and KRaft records (org.apache.kafka.common.record.ControlRecordType)."""

from __future__ import annotations

from typing import Any, NamedTuple

from kctl.base.binary_layout import INT16, INT32, Layout
from kctl.segment.format.messages import BadMessage, Message, MessageReader, json_text, message, read, to_json
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.format.release import Release

_KEY = Layout(version=INT16, type=INT16)
_END_MARKER = Layout(version=INT16, coordinator_epoch=INT32)
NAMES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER = 0, 1, 2, 3, 4
# KRaft control records that are printed with their content: their label in DumpLogSegments, and their definition.
_MESSAGES = {
    2: ("LeaderChange:", "LeaderChangeMessage"),  # not in 3.9
    3: ("SnapshotHeader", "SnapshotHeaderRecord"),
    4: ("SnapshotFooter", "SnapshotFooterRecord"),
    5: ("KRaftVersion", "KRaftVersionRecord"),
    6: ("KRaftVoters", "VotersRecord"),
}


def control_type(record: StoredRecord) -> int:
    """Return the id of the type. Raises BadRecords for an invalid key."""
    if record.key is None or len(record.key) < _KEY.size:
        raise BadRecords("a control record without a type")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise BadRecords(f"Invalid version found for control record: {version}. May indicate data corruption")
    return int(kind)


def control_text(record: StoredRecord, release: Release) -> str:
    """Format a control record like DumpLogSegments. Raises BadRecords."""
    kind = control_type(record)
    if kind in {ABORT, COMMIT}:
        if record.value is None or len(record.value) < _END_MARKER.size:
            raise BadRecords("a transaction marker that is too short")
        _, epoch = _END_MARKER.unpack_from(record.value)
        return f" endTxnMarker: {NAMES[kind]} coordinatorEpoch: {epoch}"
    content = None if kind == LEADER_CHANGE and release is Release.KAFKA_3_9 else kraft_content(record, release)
    if content is not None:
        return f" {_MESSAGES[kind][0]} {json_text(content.data)}"
    return f" controlType: {NAMES.get(kind, 'UNKNOWN')}({kind})"


class KraftContent(NamedTuple):
    """The content of a KRaft control record. data: like Kafka's JSON converters."""

    definition: Message
    version: int
    data: dict[str, Any]


def kraft_content(record: StoredRecord, release: Release) -> KraftContent | None:
    """Return the content of a control record; None if it is not one of KRaft. Raises BadRecords.

    ControlRecordUtils reads every message as version 0. The message itself names the version for its JSON.
    """
    kind = control_type(record)
    if kind not in _MESSAGES:
        return None
    definition = message(_MESSAGES[kind][1], release)
    try:
        values = read(definition, MessageReader(record.value or b""), 0)
    except BadMessage as exc:
        raise BadRecords(f"a control record of type {NAMES[kind]} that cannot be read: {exc}") from None
    version = values["version"]
    return KraftContent(definition, version, to_json(definition.fields, values, definition.nearest(version)))


def control_problem(record: StoredRecord) -> str | None:
    """Return why the type of a control record is unknown; None if it is known."""
    try:
        kind = control_type(record)
    except BadRecords as exc:
        return str(exc)
    return None if kind in NAMES else f"unknown control record type {kind}"
