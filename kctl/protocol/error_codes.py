"""Kafka's error codes as errors of kctl. Source: org.apache.kafka.common.protocol.Errors (4.1)."""

from __future__ import annotations

import re

from kctl.errors import (
    AlreadyExists,
    AuthenticationFailed,
    Busy,
    KctlError,
    NotAuthorized,
    NotFound,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    Refused,
)

# code → (Kafka's name, what it means)
ERRORS: dict[int, tuple[str, str]] = {
    -1: ("UNKNOWN_SERVER_ERROR", "the broker failed unexpectedly; its log says why"),
    0: ("NONE", "no error"),
    1: ("OFFSET_OUT_OF_RANGE", "the offset lies outside of the log"),
    2: ("CORRUPT_MESSAGE", "a record's checksum is wrong, or a compacted topic got a record without a key"),
    3: ("UNKNOWN_TOPIC_OR_PARTITION", "the topic or partition does not exist on this broker"),
    4: ("INVALID_FETCH_SIZE", "the fetch size is invalid"),
    5: ("LEADER_NOT_AVAILABLE", "the partition has no leader now"),
    6: ("NOT_LEADER_OR_FOLLOWER", "the broker is not the leader or a replica of the partition any more"),
    7: ("REQUEST_TIMED_OUT", "the request timed out in the broker"),
    8: ("BROKER_NOT_AVAILABLE", "the broker is not available"),
    9: ("REPLICA_NOT_AVAILABLE", "the replica is not available"),
    10: ("MESSAGE_TOO_LARGE", "a record is larger than the broker takes"),
    11: ("STALE_CONTROLLER_EPOCH", "the controller changed"),
    12: ("OFFSET_METADATA_TOO_LARGE", "the metadata of an offset is too large"),
    13: ("NETWORK_EXCEPTION", "the connection broke before an answer came"),
    14: ("COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is loading and cannot answer yet"),
    15: ("COORDINATOR_NOT_AVAILABLE", "there is no coordinator now"),
    16: ("NOT_COORDINATOR", "the broker is not the coordinator any more"),
    17: ("INVALID_TOPIC_EXCEPTION", "the topic's name is invalid, or the topic is internal"),
    18: ("RECORD_LIST_TOO_LARGE", "a batch is larger than a segment"),
    19: ("NOT_ENOUGH_REPLICAS", "fewer replicas are in sync than min.insync.replicas asks for"),
    20: (
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "written, but to fewer in-sync replicas than min.insync.replicas asks for",
    ),
    21: ("INVALID_REQUIRED_ACKS", "acks must be 0, 1 or all"),
    22: ("ILLEGAL_GENERATION", "the group's generation is over"),
    23: ("INCONSISTENT_GROUP_PROTOCOL", "the group's members use other protocols"),
    24: ("INVALID_GROUP_ID", "the group id is invalid"),
    25: ("UNKNOWN_MEMBER_ID", "the coordinator does not know this member"),
    26: ("INVALID_SESSION_TIMEOUT", "the session timeout lies outside of what the broker allows"),
    27: ("REBALANCE_IN_PROGRESS", "the group is rebalancing"),
    28: ("INVALID_COMMIT_OFFSET_SIZE", "the offset's data is too large"),
    29: ("TOPIC_AUTHORIZATION_FAILED", "not authorized for the topic"),
    30: ("GROUP_AUTHORIZATION_FAILED", "not authorized for the group"),
    31: ("CLUSTER_AUTHORIZATION_FAILED", "not authorized for the cluster"),
    32: ("INVALID_TIMESTAMP", "a record's timestamp lies outside of what the topic takes"),
    33: ("UNSUPPORTED_SASL_MECHANISM", "the SASL mechanism is not enabled"),
    34: ("ILLEGAL_SASL_STATE", "a login is not possible here"),
    35: ("UNSUPPORTED_VERSION", "the broker does not know this version of the request"),
    36: ("TOPIC_ALREADY_EXISTS", "the topic exists already"),
    37: ("INVALID_PARTITIONS", "the number of partitions is invalid"),
    38: ("INVALID_REPLICATION_FACTOR", "the replication factor is below 1 or above the number of brokers"),
    39: ("INVALID_REPLICA_ASSIGNMENT", "the replica assignment is invalid"),
    40: ("INVALID_CONFIG", "a config is invalid"),
    41: ("NOT_CONTROLLER", "the broker is not the controller any more"),
    42: ("INVALID_REQUEST", "the broker does not take the request"),
    43: ("UNSUPPORTED_FOR_MESSAGE_FORMAT", "the topic's message format is too old"),
    44: ("POLICY_VIOLATION", "a policy of the cluster forbids it"),
    45: ("OUT_OF_ORDER_SEQUENCE_NUMBER", "a producer's sequence number is out of order"),
    46: ("DUPLICATE_SEQUENCE_NUMBER", "a producer's sequence number came twice"),
    47: ("INVALID_PRODUCER_EPOCH", "a newer producer took over"),
    48: ("INVALID_TXN_STATE", "the transaction is in another state"),
    49: ("INVALID_PRODUCER_ID_MAPPING", "the producer id is not the transactional id's"),
    50: ("INVALID_TRANSACTION_TIMEOUT", "the transaction timeout is larger than the broker allows"),
    51: ("CONCURRENT_TRANSACTIONS", "another operation on the transaction runs"),
    52: ("TRANSACTION_COORDINATOR_FENCED", "the transaction coordinator changed"),
    53: ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "not authorized for the transactional id"),
    54: ("SECURITY_DISABLED", "the cluster has no authorizer, so no ACLs"),
    55: ("OPERATION_NOT_ATTEMPTED", "not attempted, because another part of the request failed"),
    56: ("KAFKA_STORAGE_ERROR", "a disk of the broker failed"),
    57: ("LOG_DIR_NOT_FOUND", "the broker has no such log dir"),
    58: ("SASL_AUTHENTICATION_FAILED", "the login failed"),
    59: ("UNKNOWN_PRODUCER_ID", "the broker does not know the producer id any more"),
    60: ("REASSIGNMENT_IN_PROGRESS", "a reassignment is in progress"),
    61: ("DELEGATION_TOKEN_AUTH_DISABLED", "delegation tokens are not enabled"),
    62: ("DELEGATION_TOKEN_NOT_FOUND", "the delegation token does not exist"),
    63: ("DELEGATION_TOKEN_OWNER_MISMATCH", "the delegation token belongs to somebody else"),
    64: ("DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "delegation tokens are not given on this listener"),
    65: ("DELEGATION_TOKEN_AUTHORIZATION_FAILED", "not authorized for the delegation token"),
    66: ("DELEGATION_TOKEN_EXPIRED", "the delegation token is expired"),
    67: ("INVALID_PRINCIPAL_TYPE", "the type of principal is not supported"),
    68: ("NON_EMPTY_GROUP", "the group has members"),
    69: ("GROUP_ID_NOT_FOUND", "the group does not exist"),
    70: ("FETCH_SESSION_ID_NOT_FOUND", "the fetch session is over"),
    71: ("INVALID_FETCH_SESSION_EPOCH", "the fetch session's epoch is invalid"),
    72: ("LISTENER_NOT_FOUND", "the leader has no listener of this name"),
    73: ("TOPIC_DELETION_DISABLED", "the brokers have delete.topic.enable=false"),
    74: ("FENCED_LEADER_EPOCH", "the leader changed"),
    75: ("UNKNOWN_LEADER_EPOCH", "the broker does not know this leader epoch yet"),
    76: ("UNSUPPORTED_COMPRESSION_TYPE", "the compression type is not supported"),
    77: ("STALE_BROKER_EPOCH", "the broker was restarted"),
    78: ("OFFSET_NOT_AVAILABLE", "the new leader cannot tell its offsets yet"),
    79: ("MEMBER_ID_REQUIRED", "the group's member needs an id"),
    80: ("PREFERRED_LEADER_NOT_AVAILABLE", "the preferred leader is not in sync"),
    81: ("GROUP_MAX_SIZE_REACHED", "the group is full"),
    82: ("FENCED_INSTANCE_ID", "another member has the same group.instance.id"),
    83: ("ELIGIBLE_LEADERS_NOT_AVAILABLE", "no replica can become the leader"),
    84: ("ELECTION_NOT_NEEDED", "the leader is already the one wanted"),
    85: ("NO_REASSIGNMENT_IN_PROGRESS", "no reassignment is in progress"),
    86: ("GROUP_SUBSCRIBED_TO_TOPIC", "the group is subscribed to the topic"),
    87: ("INVALID_RECORD", "the broker does not take the record"),
    88: ("UNSTABLE_OFFSET_COMMIT", "a transaction with offsets is open"),
    89: ("THROTTLING_QUOTA_EXCEEDED", "the quota is used up; try again later"),
    90: ("PRODUCER_FENCED", "a newer producer took over"),
    91: ("RESOURCE_NOT_FOUND", "the resource does not exist"),
    92: ("DUPLICATE_RESOURCE", "the resource is named twice"),
    93: ("UNACCEPTABLE_CREDENTIAL", "the credential is not acceptable"),
    94: ("INCONSISTENT_VOTER_SET", "the voter sets differ"),
    95: ("INVALID_UPDATE_VERSION", "the version to update to is invalid"),
    96: ("FEATURE_UPDATE_FAILED", "the features could not be updated"),
    97: ("PRINCIPAL_DESERIALIZATION_FAILURE", "the controller could not read the principal"),
    98: ("SNAPSHOT_NOT_FOUND", "the snapshot does not exist"),
    99: ("POSITION_OUT_OF_RANGE", "the position lies outside of the snapshot"),
    100: ("UNKNOWN_TOPIC_ID", "no topic has this id"),
    101: ("DUPLICATE_BROKER_REGISTRATION", "another broker has this id"),
    102: ("BROKER_ID_NOT_REGISTERED", "no broker is registered with this id"),
    103: ("INCONSISTENT_TOPIC_ID", "the topic was deleted and made again"),
    104: ("INCONSISTENT_CLUSTER_ID", "the broker belongs to another cluster"),
    105: ("TRANSACTIONAL_ID_NOT_FOUND", "the transactional id does not exist"),
    106: ("FETCH_SESSION_TOPIC_ID_ERROR", "the fetch session mixes topic names and ids"),
    107: ("INELIGIBLE_REPLICA", "a replica of the new ISR cannot be in it"),
    108: ("NEW_LEADER_ELECTED", "the leader changed"),
    109: ("OFFSET_MOVED_TO_TIERED_STORAGE", "the offset lies in tiered storage"),
    110: ("FENCED_MEMBER_EPOCH", "the coordinator fenced the member"),
    111: ("UNRELEASED_INSTANCE_ID", "another member still has this group.instance.id"),
    112: ("UNSUPPORTED_ASSIGNOR", "the group does not support the assignor"),
    113: ("STALE_MEMBER_EPOCH", "the member's epoch is stale"),
    114: ("MISMATCHED_ENDPOINT_TYPE", "a controller was asked instead of a broker, or the reverse"),
    115: ("UNSUPPORTED_ENDPOINT_TYPE", "the type of endpoint is not supported"),
    116: ("UNKNOWN_CONTROLLER_ID", "no controller has this id"),
    117: ("UNKNOWN_SUBSCRIPTION_ID", "the telemetry subscription is unknown"),
    118: ("TELEMETRY_TOO_LARGE", "the telemetry is too large"),
    119: ("INVALID_REGISTRATION", "the controller does not take the broker's registration"),
    120: ("TRANSACTION_ABORTABLE", "the transaction has to be aborted"),
    121: ("INVALID_RECORD_STATE", "the record is in another state"),
    122: ("SHARE_SESSION_NOT_FOUND", "the share session is over"),
    123: ("INVALID_SHARE_SESSION_EPOCH", "the share session's epoch is invalid"),
    124: ("FENCED_STATE_EPOCH", "the share group's state epoch is stale"),
    125: ("INVALID_VOTER_KEY", "the voter's key is another"),
    126: ("DUPLICATE_VOTER", "the voter is there already"),
    127: ("VOTER_NOT_FOUND", "the voter is not there"),
    128: ("INVALID_REGULAR_EXPRESSION", "the regular expression is invalid"),
    129: ("REBOOTSTRAP_REQUIRED", "the client has to connect anew"),
    130: ("STREAMS_INVALID_TOPOLOGY", "the topology is invalid"),
    131: ("STREAMS_INVALID_TOPOLOGY_EPOCH", "the topology's epoch is invalid"),
    132: ("STREAMS_TOPOLOGY_FENCED", "the topology's epoch is stale"),
    133: ("SHARE_SESSION_LIMIT_REACHED", "there are too many share sessions"),
}

_CLASSES: dict[type[KctlError], set[int]] = {
    NotFound: {3, 57, 62, 69, 91, 98, 100, 102, 105, 116, 127},
    AlreadyExists: {36, 126},
    NotAuthorized: {29, 30, 31, 53, 64, 65},
    AuthenticationFailed: {33, 34, 58},
    NotSupported: {35, 43, 54, 61, 67, 73, 76, 112, 115},
    OutcomeUnknown: {7, 13},
    Busy: {27, 60, 89},
    # The broker looked at the request and did not begin it.
    Refused: {
        *(
            1,
            4,
            10,
            12,
            17,
            18,
            19,
            21,
            23,
            24,
            26,
            28,
            32,
            37,
            38,
            39,
            40,
            41,
            42,
            44,
            50,
            55,
            68,
            80,
            83,
            84,
            85,
            86,
        ),
        *(87, 92, 93, 95, 114, 128),
    },
}
_CLASS_OF = {code: cls for cls, codes in _CLASSES.items() for code in codes}

# Worth asking again, after the metadata or the coordinator has been looked up anew.
RETRIABLE = frozenset({3, 5, 6, 8, 9, 13, 14, 15, 16, 41, 56, 72, 74, 75, 78, 100, 103})
NOT_CONTROLLER = 41

_DENIED = re.compile(r"([\w ]+ )?authorization failed\.?", re.IGNORECASE)
_HINTS: dict[type[KctlError], str] = {
    NotAuthorized: "ask for an ACL, or use a context with another user",
    OutcomeUnknown: "look at the state before you try again",
    Busy: "try again when it is over",
}


def error_name(error_code: int) -> str:
    """Kafka's own name of a code, for example UNKNOWN_TOPIC_OR_PARTITION."""
    return ERRORS[error_code][0] if error_code in ERRORS else f"error {error_code}"


def error_for(error_code: int, message: str | None, *, subject: str, hint: str | None = None) -> KctlError:
    """The error for a code other than 0.

    message: what the broker said, preferred over the code's own meaning. subject: what it is about, «topic 'x'».
    The details carry `kafka_error`, Kafka's name of the code.
    """
    if error_code == 0:
        raise ValueError(f"{subject}: 0 is no error")
    cls = _CLASS_OF.get(error_code, OperationFailed)
    name, meaning = ERRORS.get(error_code, (error_name(error_code), "the broker gave an unknown error"))
    said = " ".join((message or "").split())
    # AuthHelper prints its own objects; and «Topic authorization failed.» is the code's name once more.
    if said.startswith("Request Request(") or _DENIED.fullmatch(said):
        said = ""
    text = said.rstrip(".") if said and said.upper() != name else meaning
    return cls(
        f"{subject}: {text} ({name})",
        hint=hint if hint is not None else _HINTS.get(cls),
        details={"kafka_error": name, "kafka_error_code": error_code},
    )
