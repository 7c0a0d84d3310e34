"""What the records of Kafka's own topics hold, by the definitions of its messages; how it is shown is told elsewhere.

__consumer_offsets: CoordinatorRecordSerde (KIP-848); the version in front of a key tells its type.
__share_group_state: ShareCoordinatorRecordSerde (KIP-932), Kafka 4.1 and later. __transaction_state: TransactionLog
(KIP-98). __cluster_metadata: MetadataRecordSerde (KIP-631). __remote_log_metadata: RemoteLogMetadataSerde (KIP-405).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kctl.base.binary_layout import INT16
from kctl.segment.format.messages import BadMessage, Message, Reader, message, messages, read, to_json
from kctl.segment.format.record import Record

TRANSACTION_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
_FRAME_VERSION = 1
_CONSUMER = "consumer"
_SHARE_STATE = ("ShareSnapshotKey", "ShareUpdateKey")  # of another topic


class Part(NamedTuple):
    """A key or a value. version: the number in front of it, a key's type; data: as Kafka's JSON converters have it.

    problem: why it may not be what it seems, although Kafka's tool does not complain.
    """

    definition: Message
    version: int
    data: dict[str, Any]
    problem: str | None = None


class UnknownType(ValueError):
    """A key of a type that is not known."""

    def __init__(self, number: int) -> None:
        super().__init__(f"unknown record type {number}")
        self.number = number


# --- coordinators: __consumer_offsets, __share_group_state, __transaction_state -------------------------------------


@lru_cache(maxsize=1)
def group_keys() -> Mapping[int, Message]:
    """The version in front of a key of __consumer_offsets → its definition; the value's has the same name."""
    keys = [found for found in messages() if found.name.endswith("Key") and "Group" in found.name]
    keys = [found for found in keys if not found.name.startswith("Share")]  # 3.9's tool does not know them
    keys.append(message("OffsetCommitKey"))
    return {version: key for key in keys for version in range(key.versions[0], key.versions[1] + 1)}


@lru_cache(maxsize=1)
def later_group_keys() -> Mapping[int, Message]:
    """The same with those of Kafka 4 (KIP-848, KIP-932, KIP-1071)."""
    keys = [
        each for each in messages(later=True) if each.name.endswith("Key") and not each.name.startswith("Transaction")
    ]
    found = {key.api_key: key for key in keys if key.api_key is not None and key.name not in _SHARE_STATE}
    return found | {0: message("OffsetCommitKey")}  # values of every version stand behind keys of type 0


@lru_cache(maxsize=1)
def share_keys() -> Mapping[int, Message]:
    """The same of __share_group_state, where the number in front is the type's."""
    return {0: message("ShareSnapshotKey"), 1: message("ShareUpdateKey")}


def coordinator_record(
    key: bytes, value: bytes | None, keys: Mapping[int, Message], *, lenient: bool = False, later: bool = False
) -> tuple[Part, Part | None]:
    """Key and value; None is a deletion. Raises UnknownType, BadMessage.

    lenient: see messages.read; later: with the definitions of Kafka 4.
    """
    number, content = _with_version(key, "key")
    definition = keys.get(number)
    if definition is None:
        raise UnknownType(number)
    version = number if definition.versions[0] <= number <= definition.versions[1] else definition.versions[0]
    values, problem = _read(definition, content, version, "key", lenient=lenient)
    key_part = Part(definition, number, values, problem)
    if value is None:
        return key_part, None
    version, content = _with_version(value, "value")
    definition = message(definition.name.removesuffix("Key") + "Value", later=later)
    values, problem = _read(definition, content, version, "value", lenient=lenient)
    if definition.name == "GroupMetadataValue" and values["protocolType"] == _CONSUMER:
        _open_members(values["members"])
    return key_part, Part(definition, version, values, problem)


def _with_version(data: bytes, name: str) -> tuple[int, bytes]:
    if len(data) < INT16.size:
        raise BadMessage(f"Could not read version from {name}'s buffer.")
    return INT16.unpack_from(data)[0], data[INT16.size :]


def _read(
    definition: Message, data: bytes, version: int, name: str, *, lenient: bool
) -> tuple[dict[str, Any], str | None]:
    """Its fields as JSON, and what is wrong with it all the same."""
    reader = Reader(data)
    try:
        values = read(definition, reader, version, lenient=lenient)
    except BadMessage as exc:
        raise BadMessage(
            f"Could not read record with version {version} from {name}'s buffer due to: {exc.said or 'null'}."
        ) from None
    return to_json(definition.fields, values, definition.nearest(version)), _problem(definition, version, reader, name)


def _problem(definition: Message, version: int, reader: Reader, name: str) -> str | None:
    if not definition.versions[0] <= version <= definition.versions[1]:
        return f"{definition.name} of the unknown version {version}"
    return f"bytes behind the {name}: {reader.left}" if reader.left else None


def _open_members(members: list[dict[str, Any]]) -> None:
    """Members of a consumer group carry their subscription and assignment as bytes (ConsumerProtocol)."""
    for member in members:
        for field, name in (
            ("subscription", "ConsumerProtocolSubscription"),
            ("assignment", "ConsumerProtocolAssignment"),
        ):
            data = base64.b64decode(member[field])
            if len(data) < INT16.size:
                continue
            (version,) = INT16.unpack_from(data)
            definition = message(name)
            try:
                values = read(definition, Reader(data[INT16.size :]), version)
            except BadMessage:
                continue  # the bytes stay as they are
            member[field] = to_json(definition.fields, values, version)


class TransactionPart(NamedTuple):
    """A key or a value of __transaction_state. values: None of an unknown version; problem: as in Part."""

    definition: Message
    version: int
    values: dict[str, Any] | None
    problem: str | None


def transaction_part(data: bytes, name: str, *, later: bool = False) -> TransactionPart:
    """By its definition's name. later: as Kafka 4 has it. Raises BadMessage."""
    if len(data) < INT16.size:
        raise BadMessage(None)
    (version,) = INT16.unpack_from(data)
    definition, reader = message(name, later=later), Reader(data[INT16.size :])
    known = definition.versions[0] <= version <= definition.versions[1]
    values = read(definition, reader, version) if known else None
    return TransactionPart(definition, version, values, _problem(definition, version, reader, name))


def check_transaction(values: dict[str, Any]) -> str:
    """The name of a transaction's state. Raises BadMessage for what TransactionLog does not accept."""
    status = values["transactionStatus"]
    if not 0 <= status < len(TRANSACTION_STATES):
        raise BadMessage(f"Unknown transaction state id {status} from the transaction status message")
    state = TRANSACTION_STATES[status]
    if state != "Empty" and values["transactionPartitions"] is None:
        raise BadMessage("a transaction without partitions")
    return state


# --- framed messages: __cluster_metadata, __remote_log_metadata -----------------------------------------------------


@lru_cache(maxsize=4)
def _by_api_key(*, remote: bool, later: bool) -> dict[int, Message]:
    """Types of the metadata log, or of the remote log's, which count from 0 as well."""
    names = ("RemoteLog", "RemotePartition")
    return {
        found.api_key: found
        for found in messages(later=later)
        if found.api_key is not None and found.name.endswith("Record") and found.name.startswith(names) == remote
    }


def framed(data: bytes, *, remote: bool, lenient: bool = False, later: bool = False) -> Part:
    """Frame version, type and version, each an unsigned varint, then the message (AbstractApiMessageSerde).

    Its data are the values, not yet as JSON. lenient: see coordinator_record. Raises BadMessage.
    """
    reader = Reader(data)
    frame = _small(reader, "frame version")
    if frame == 0:
        raise BadMessage(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release "
            "of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != _FRAME_VERSION:
        raise BadMessage(
            f"Could not deserialize metadata record due to unknown frame version {frame}(only frame version "
            f"{_FRAME_VERSION} is supported)"
        )
    key, version = _small(reader, "type"), _small(reader, "version")
    definition = _by_api_key(remote=remote, later=later).get(key)
    if definition is None:
        raise BadMessage(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {key}")
    try:
        values = read(definition, reader, version, lenient=lenient)
    except BadMessage:
        raise BadMessage(f"Failed to deserialize record with type {key}") from None
    if reader.left:
        raise BadMessage(f"Found {reader.left} byte(s) of garbage after {key}")
    return Part(definition, version, values, _problem(definition, version, reader, "value"))


def check_remote(definition: Message, values: dict[str, Any]) -> None:
    """Raises BadMessage for what the classes of remote log metadata do not accept."""
    if definition.name == "RemotePartitionDeleteMetadataRecord":
        if not 0 <= values["remotePartitionDeleteState"] < len(DELETE_STATES):
            raise BadMessage(None)
        return
    no_state = not 0 <= values["remoteLogSegmentState"] < len(SEGMENT_STATES)
    if definition.name == "RemoteLogSegmentMetadataRecord":
        start, end = values["startOffset"], values["endOffset"]
        if start < 0:
            text = f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
            raise BadMessage(text)
        if end < start:
            text = f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset"
            raise BadMessage(f"{text} = {start}")
    elif no_state:
        raise BadMessage("state can not be null")
    if "segmentLeaderEpochs" in values and not values["segmentLeaderEpochs"]:
        raise BadMessage("segmentLeaderEpochs can not be null or empty")
    if no_state:
        raise BadMessage("state can not be null")


def _small(reader: Reader, what: str) -> int:
    try:
        value = reader.unsigned_varint()
    except BadMessage:
        raise BadMessage(f"Error while reading {what}") from None
    if value > 0x7FFF:
        raise BadMessage(f"Value for {what} was too large.")
    return value


def metadata_part(record: Record, *, remote: bool, lenient: bool = False, later: bool = False) -> Part:
    """A record of __cluster_metadata or __remote_log_metadata. lenient, later: see
    coordinator_record. Raises BadMessage."""
    part = framed(record.value or b"", remote=remote, lenient=lenient, later=later)
    definition = part.definition
    if remote:
        check_remote(definition, part.data)
    return part._replace(data=to_json(definition.fields, part.data, definition.nearest(part.version)))
