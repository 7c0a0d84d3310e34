"""The parts of an ACL. Names follow org.apache.kafka.common.acl and org.apache.kafka.common.resource."""

from __future__ import annotations

from dataclasses import dataclass

ANY, MATCH = 1, 2  # filter values; MATCH is a pattern type: all patterns that match a name
RESOURCE_TYPES = {
    "TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5, "DELEGATION_TOKEN": 6, "USER": 7,
}  # fmt: skip
PATTERN_TYPES = {"LITERAL": 3, "PREFIXED": 4}
PERMISSIONS = {"DENY": 2, "ALLOW": 3}
OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12, "CREATE_TOKENS": 13, "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}  # fmt: skip

# Operations that apply to each resource type, apart from ALL (AclEntry.supportedOperations, 4.1).
SUPPORTED: dict[str, tuple[str, ...]] = {
    "TOPIC": ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "GROUP": ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "CLUSTER": (
        "CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE",
    ),
    "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE", "TWO_PHASE_COMMIT"),
    "DELEGATION_TOKEN": ("DESCRIBE",),
    "USER": ("CREATE_TOKENS", "DESCRIBE_TOKENS"),
}  # fmt: skip

# Operations that an allowed operation implies; a denial implies nothing (StandardAuthorizerData, AclAuthorizer).
IMPLIES: dict[str, tuple[str, ...]] = {
    "READ": ("DESCRIBE",),
    "WRITE": ("DESCRIBE",),
    "DELETE": ("DESCRIBE",),
    "ALTER": ("DESCRIBE",),
    "ALTER_CONFIGS": ("DESCRIBE_CONFIGS",),
}

WILDCARD = "*"  # as a literal name: all resources; as a host: all hosts
EVERYONE = "User:*"
CLUSTER_NAME = "kafka-cluster"  # name of the only resource of type CLUSTER


@dataclass(frozen=True, order=True)
class Acl:
    """An ACL binding as stored by Kafka. principal: "User:alice"."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    permission_type: str
    operation: str
    host: str = WILDCARD


@dataclass(frozen=True)
class AclFilter:
    """A filter for ACLs; None matches any value.

    covering: match all patterns that cover resource_name, not only the pattern with exactly this name.
    """

    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    covering: bool = False
    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    permission_type: str | None = None

    @property
    def is_empty(self) -> bool:
        return self == AclFilter()


def name_of(codes: dict[str, int], code: int) -> str:
    """Return the name of a code in a response; "UNKNOWN_17" for a code from a later Kafka release."""
    return next((name for name, value in codes.items() if value == code), f"UNKNOWN_{code}")
