"""Broker error codes: meanings, properties, and the kctl errors that they map to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kctl.errors import (
    AlreadyExists,
    AuthenticationFailed,
    Busy,
    ConnectionFailed,
    ConnectionReason,
    ConnectionTimedOut,
    KctlError,
    NotAuthorized,
    NotFound,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    Reason,
    Refused,
)
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kafka.errors import KafkaError

MEANINGS: dict[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed unexpectedly; see its log",
    ErrorCode.NONE: "no error",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is out of range",
    ErrorCode.CORRUPT_MESSAGE: "a record's checksum is wrong, or a record for a compacted topic has no key",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition does not exist on this broker",
    ErrorCode.INVALID_FETCH_SIZE: "the fetch size is invalid",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition currently has no leader",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker is no longer the leader or a replica of the partition",
    ErrorCode.REQUEST_TIMED_OUT: "the request timed out on the broker",
    ErrorCode.BROKER_NOT_AVAILABLE: "the broker is not available",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the replica is not available",
    ErrorCode.MESSAGE_TOO_LARGE: "a record is larger than the broker accepts",
    ErrorCode.STALE_CONTROLLER_EPOCH: "the controller changed",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata of an offset is too large",
    ErrorCode.NETWORK_EXCEPTION: "the connection broke before a response arrived",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator is still loading",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "there is currently no coordinator",
    ErrorCode.NOT_COORDINATOR: "the broker is no longer the coordinator",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is invalid, or the topic is internal",
    ErrorCode.RECORD_LIST_TOO_LARGE: "a batch is larger than a segment",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas requires",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        "written, but to fewer in-sync replicas than min.insync.replicas requires"
    ),
    ErrorCode.INVALID_REQUIRED_ACKS: "acks must be 0, 1 or all",
    ErrorCode.ILLEGAL_GENERATION: "the group has moved to a newer generation",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the group's members use different protocols",
    ErrorCode.INVALID_GROUP_ID: "the group id is invalid",
    ErrorCode.UNKNOWN_MEMBER_ID: "the coordinator does not know this member",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the session timeout is outside the broker's limits",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is rebalancing",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "the offset's data is too large",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "not authorized for the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not authorized for the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "not authorized for the cluster",
    ErrorCode.INVALID_TIMESTAMP: "a record's timestamp is outside the topic's limits",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "the SASL mechanism is not enabled",
    ErrorCode.ILLEGAL_SASL_STATE: "a login is not allowed at this point",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not support this version of the request",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic already exists",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is invalid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the replication factor is below 1 or above the number of brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "the replica assignment is invalid",
    ErrorCode.INVALID_CONFIG: "a config is invalid",
    ErrorCode.NOT_CONTROLLER: "the broker is no longer the controller",
    ErrorCode.INVALID_REQUEST: "the broker rejected the request",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the topic's message format is too old",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster rejected the request",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "a producer's sequence number is out of order",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "a producer's sequence number is a duplicate",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a newer producer took over",
    ErrorCode.INVALID_TXN_STATE: "the transaction is in another state",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the producer id does not belong to the transactional id",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "the transaction timeout is larger than the broker allows",
    ErrorCode.CONCURRENT_TRANSACTIONS: "another operation on the transaction is in progress",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "the transaction coordinator changed",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not authorized for the transactional id",
    ErrorCode.SECURITY_DISABLED: "the cluster has no authorizer and therefore no ACLs",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "not attempted, because another part of the request failed",
    ErrorCode.KAFKA_STORAGE_ERROR: "a disk of the broker failed",
    ErrorCode.LOG_DIR_NOT_FOUND: "the broker has no such log dir",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "the login failed",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the broker no longer knows the producer id",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "a reassignment is in progress",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are not enabled",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "the delegation token does not exist",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "the delegation token belongs to another user",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "delegation tokens cannot be requested on this listener",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "not authorized for the delegation token",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the delegation token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "the type of principal is not supported",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "the group does not exist",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "the fetch session has expired",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "the fetch session's epoch is invalid",
    ErrorCode.LISTENER_NOT_FOUND: "the leader has no listener of this name",
    ErrorCode.TOPIC_DELETION_DISABLED: "the brokers have delete.topic.enable=false",
    ErrorCode.FENCED_LEADER_EPOCH: "the leader changed",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "the broker does not know this leader epoch yet",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the compression type is not supported",
    ErrorCode.STALE_BROKER_EPOCH: "the broker was restarted",
    ErrorCode.OFFSET_NOT_AVAILABLE: "the new leader's offsets are not available yet",
    ErrorCode.MEMBER_ID_REQUIRED: "the group's member needs an id",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not in sync",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group is full",
    ErrorCode.FENCED_INSTANCE_ID: "another member has the same group.instance.id",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica can become the leader",
    ErrorCode.ELECTION_NOT_NEEDED: "the leader is already the right one",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "no reassignment is in progress",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group is subscribed to the topic",
    ErrorCode.INVALID_RECORD: "the broker rejected the record",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "a transaction with offsets is open",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "the quota is used up; try again later",
    ErrorCode.PRODUCER_FENCED: "a newer producer took over",
    ErrorCode.RESOURCE_NOT_FOUND: "the resource does not exist",
    ErrorCode.DUPLICATE_RESOURCE: "the request names the resource twice",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "the credential is not acceptable",
    ErrorCode.INCONSISTENT_VOTER_SET: "the voter sets differ",
    ErrorCode.INVALID_UPDATE_VERSION: "the version to update to is invalid",
    ErrorCode.FEATURE_UPDATE_FAILED: "the features could not be updated",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "the controller could not read the principal",
    ErrorCode.SNAPSHOT_NOT_FOUND: "the snapshot does not exist",
    ErrorCode.POSITION_OUT_OF_RANGE: "the position is outside the snapshot",
    ErrorCode.UNKNOWN_TOPIC_ID: "no topic has this id",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "another broker has this id",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "no broker is registered with this id",
    ErrorCode.INCONSISTENT_TOPIC_ID: "the topic was deleted and recreated",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the broker belongs to another cluster",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "the transactional id does not exist",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "the fetch session mixes topic names and ids",
    ErrorCode.INELIGIBLE_REPLICA: "a replica of the new ISR is not eligible",
    ErrorCode.NEW_LEADER_ELECTED: "the leader changed",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "the offset is in tiered storage",
    ErrorCode.FENCED_MEMBER_EPOCH: "the coordinator fenced the member",
    ErrorCode.UNRELEASED_INSTANCE_ID: "another member still has this group.instance.id",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the group does not support the assignor",
    ErrorCode.STALE_MEMBER_EPOCH: "the member's epoch is stale",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "the request was sent to a controller instead of a broker, or the reverse",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "the type of endpoint is not supported",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "no controller has this id",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "the telemetry subscription is unknown",
    ErrorCode.TELEMETRY_TOO_LARGE: "the telemetry is too large",
    ErrorCode.INVALID_REGISTRATION: "the controller rejected the broker's registration",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction must be aborted",
    ErrorCode.INVALID_RECORD_STATE: "the record is in another state",
    ErrorCode.SHARE_SESSION_NOT_FOUND: "the share session has expired",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "the share session's epoch is invalid",
    ErrorCode.FENCED_STATE_EPOCH: "the share group's state epoch is stale",
    ErrorCode.INVALID_VOTER_KEY: "the voter's key does not match",
    ErrorCode.DUPLICATE_VOTER: "the voter already exists",
    ErrorCode.VOTER_NOT_FOUND: "the voter does not exist",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the regular expression is invalid",
    ErrorCode.REBOOTSTRAP_REQUIRED: "the client must bootstrap again",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "the topology is invalid",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "the topology's epoch is invalid",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "the topology's epoch is stale",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "there are too many share sessions",
    ErrorCode.GROUP_DELETION_FAILED: "the group could not be deleted",
    ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: "the topology's description could not be updated",
    ErrorCode.CONTROLLER_ID_NOT_REGISTERED: "no controller is registered with this id",
}

_CLASSES: dict[type[KctlError], set[ErrorCode]] = {
    NotFound: {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
        ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_CONTROLLER_ID, ErrorCode.VOTER_NOT_FOUND, ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
    },
    AlreadyExists: {
        ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.DUPLICATE_VOTER,
    },
    NotAuthorized: {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    },
    AuthenticationFailed: {
        ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.ILLEGAL_SASL_STATE,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    },
    NotSupported: {
        ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.SECURITY_DISABLED,
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, ErrorCode.INVALID_PRINCIPAL_TYPE,
        ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
    },
    OutcomeUnknown: {
        ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION,
    },
    Busy: {
        ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.REASSIGNMENT_IN_PROGRESS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    },
    # The broker rejected the request before it changed anything.
    Refused: {
        ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_FETCH_SIZE, ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT, ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_CONFIG, ErrorCode.NOT_CONTROLLER,
        ErrorCode.INVALID_REQUEST, ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.NON_EMPTY_GROUP, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.INVALID_RECORD,
        ErrorCode.DUPLICATE_RESOURCE, ErrorCode.UNACCEPTABLE_CREDENTIAL, ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.MISMATCHED_ENDPOINT_TYPE, ErrorCode.INVALID_REGULAR_EXPRESSION,
    },
}  # fmt: skip
_CLASS_OF: dict[int, type[KctlError]] = {code: cls for cls, codes in _CLASSES.items() for code in codes}

# Kafka's Errors.exception() is a RetriableException: the same request can succeed later.
RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NOT_CONTROLLER, ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.LISTENER_NOT_FOUND, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)  # fmt: skip
# The request may have been applied, completely or in part, although the response is an error.
MAY_BE_APPLIED = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR,
    }
)  # fmt: skip
# The metadata or the coordinator must be looked up again before a retry.
LOOK_UP_AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)  # fmt: skip

_DENIED = re.compile(r"([\w ]+ )?authorization failed\.?", re.IGNORECASE)
_HINTS: dict[type[KctlError], str] = {
    NotAuthorized: "request an ACL, or use a context with a different user",
    OutcomeUnknown: "check the current state before you retry",
    Busy: "retry when it has finished",
}


def error_name(error_code: int) -> str:
    """Return Kafka's name of a code, e.g. UNKNOWN_TOPIC_OR_PARTITION."""
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"


def error_for(error_code: int, message: str | None, *, subject: str, hint: str | None = None) -> KctlError:
    """Return the error for a nonzero code.

    message: the broker's message, preferred over the code's meaning. subject: the affected object, e.g. "topic 'x'".
    The details contain `kafka_error`, Kafka's name of the code.
    """
    if error_code == ErrorCode.NONE:
        raise ValueError(f"{subject}: 0 is no error")
    cls = _CLASS_OF.get(error_code, OperationFailed)
    name, meaning = error_name(error_code), MEANINGS.get(error_code, "the broker returned an unknown error")
    reported = " ".join((message or "").split())
    # AuthHelper prints its own objects, and "Topic authorization failed." only repeats the code's name.
    if reported.startswith("Request Request(") or _DENIED.fullmatch(reported):
        reported = ""
    text = reported.rstrip(".") if reported and reported.upper() != name else meaning
    return cls(
        f"{subject}: {text} ({name})",
        hint=hint if hint is not None else _HINTS.get(cls),
        details={"kafka_error": name, "kafka_error_code": error_code},
        reason=Reason.VERSION_UNSUPPORTED if error_code == ErrorCode.UNSUPPORTED_VERSION else None,
    )


def error_from(exc: KafkaError, *, subject: str) -> KctlError:
    """Convert an exception of kafka-python. Its text is omitted, because it may contain whole requests."""
    from kafka import errors

    code = getattr(exc, "errno", None)
    if isinstance(code, int) and code > 0:
        if isinstance(exc, errors.RequestTimedOutError):
            return OutcomeUnknown(f"{subject}: no response in time", hint="check the current state before you retry")
        return error_for(code, None, subject=subject)
    if isinstance(exc, errors.KafkaTimeoutError):
        return ConnectionTimedOut(
            f"{subject}: no response in time", hint="increase --timeout", reason=ConnectionReason.NO_RESPONSE
        )
    if isinstance(exc, (errors.KafkaConnectionError, errors.NodeNotReadyError)):
        return ConnectionFailed(
            f"{subject}: the connection to the broker was lost",
            hint="check that the broker is up: `kctl broker list`",
            reason=ConnectionReason.CONNECTION_CLOSED,
        )
    return OperationFailed(f"{subject}: {type(exc).__name__}")


def has_error(answer: Any, code: int) -> bool:
    """Return True if any error_code in a response, at any depth, is `code`."""
    pending = [answer.to_dict()]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if value.get("error_code") == code:
                return True
            pending.extend(v for v in value.values() if isinstance(v, (dict, list)))
        elif isinstance(value, list):
            pending.extend(v for v in value if isinstance(v, (dict, list)))
    return False
