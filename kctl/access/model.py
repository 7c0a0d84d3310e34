"""What an ACL is made of. Names are Kafka's (org.apache.kafka.common.acl, org.apache.kafka.common.resource)."""

from __future__ import annotations

from dataclasses import dataclass

ANY, MATCH = 1, 2  # in filters; MATCH is a pattern type: all patterns that cover a name
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

# What makes sense on each type of resource, apart from ALL (AclEntry.supportedOperations, 4.1).
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

# Who is allowed the one may do the others too; a denial implies nothing (StandardAuthorizerData, AclAuthorizer).
IMPLIES: dict[str, tuple[str, ...]] = {
    "READ": ("DESCRIBE",),
    "WRITE": ("DESCRIBE",),
    "DELETE": ("DESCRIBE",),
    "ALTER": ("DESCRIBE",),
    "ALTER_CONFIGS": ("DESCRIBE_CONFIGS",),
}

WILDCARD = "*"  # as a literal name: every resource; as a host: every host
EVERYBODY = "User:*"
CLUSTER_NAME = "kafka-cluster"  # of the only resource of type CLUSTER


@dataclass(frozen=True, order=True)
class Acl:
    """One binding, as Kafka keeps it. principal: «User:alice»."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    permission_type: str
    operation: str
    host: str = WILDCARD


@dataclass(frozen=True)
class AclFilter:
    """Which ACLs; None is any. covering: those whose pattern covers resource_name, not only those of that very name."""

    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    covering: bool = False
    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    permission_type: str | None = None

    @property
    def everything(self) -> bool:
        return self == AclFilter()


def name_of(codes: dict[str, int], code: int) -> str:
    """The name of a code in an answer; «UNKNOWN_17» for one that came with a later Kafka."""
    return next((name for name, value in codes.items() if value == code), f"UNKNOWN_{code}")
