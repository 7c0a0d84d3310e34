"""Decode control records: markers of transactions and of KRaft (org.apache.kafka.common.record.ControlRecordType)."""

from __future__ import annotations

from kctl.base.binary_layout import INT16, INT32, Layout
from kctl.segment.format.messages import BadMessage, MessageReader, json_text, message, read, to_json
from kctl.segment.format.record import BadRecords, StoredRecord

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
ABORT, COMMIT = 0, 1
# KRaft control records that are printed with their content: their label in DumpLogSegments, and their definition.
_MESSAGES = {
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


def control_text(record: StoredRecord) -> str:
    """Format a control record like DumpLogSegments."""
    kind = control_type(record)
    if kind in {ABORT, COMMIT}:
        if record.value is None or len(record.value) < _END_MARKER.size:
            raise BadRecords("a transaction marker that is too short")
        _, epoch = _END_MARKER.unpack_from(record.value)
        return f" endTxnMarker: {NAMES[kind]} coordinatorEpoch: {epoch}"
    if kind in _MESSAGES:
        label, definition = _MESSAGES[kind][0], message(_MESSAGES[kind][1])
        try:
            values = read(definition, MessageReader(record.value or b""), 0)
        except BadMessage as exc:
            raise BadRecords(f"a control record of type {NAMES[kind]} that cannot be read: {exc}") from None
        return f" {label} {json_text(to_json(definition.fields, values, values['version']))}"
    return f" controlType: {NAMES.get(kind, 'UNKNOWN')}({kind})"
