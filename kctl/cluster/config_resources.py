"""Resources that have configs, as written on a command line: `topic/orders`, `broker/1`, `brokers`."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kctl.base.suggestions import did_you_mean
from kctl.errors import UsageError
from kctl.protocol.codes import ErrorCode

Kind = Literal[
    "topic", "broker", "brokers", "client-metrics", "group", "user", "users", "client-id", "clients", "ip", "ips"
]

# org.apache.kafka.common.config.ConfigResource.Type; the broker with an empty name stands for the default.
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
RESOURCE_TYPES: dict[Kind, int] = {
    "topic": TOPIC_RESOURCE,
    "broker": BROKER_RESOURCE,
    "brokers": BROKER_RESOURCE,
    "client-metrics": 16,
    "group": 32,
}
_NOT_AUTHORIZED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)  # fmt: skip
# Resources that have quotas and no other configs. The plurals are defaults.
QUOTA_KINDS: frozenset[Kind] = frozenset({"user", "users", "client-id", "clients", "ip", "ips"})
_OF_ALL: dict[str, Kind] = {"brokers": "brokers", "users": "users", "clients": "clients", "ips": "ips"}
_NAMED: dict[str, Kind] = {
    "group": "group", "client-metrics": "client-metrics", "user": "user", "client-id": "client-id", "ip": "ip",
}  # fmt: skip
_HINT = (
    "use topic/NAME, broker/ID, brokers (the default for all brokers), group/NAME or client-metrics/NAME;"
    " for quotas user/NAME, client-id/NAME, ip/ADDRESS, users, clients or ips"
)


class Resource(NamedTuple):
    """A topic, broker (by id), group or metrics subscription; or a user, client id or IP address, which have quotas.

    `brokers`, `users`, `clients` and `ips` have no name: they hold the defaults.
    """

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind

    @property
    def path(self) -> str:
        """Return the text that `parse_resource` parses."""
        return f"{self.kind}/{self.name}" if self.name else self.kind

    @property
    def type_code(self) -> int:
        return RESOURCE_TYPES[self.kind]

    @classmethod
    def topic(cls, name: str) -> Resource:
        return cls("topic", name)

    @classmethod
    def broker(cls, node: int) -> Resource:
        return cls("broker", str(node))

    @classmethod
    def brokers(cls) -> Resource:
        return cls("brokers", "")


def right_hint(operation: str, resource: Resource, error_code: int) -> str | None:
    """Return a hint that names the missing ACL; None if the error is not an authorization error."""
    if error_code not in _NOT_AUTHORIZED:
        return None
    owner = f"{resource.kind} {resource.name}" if resource.kind in ("topic", "group") else "the cluster"
    return f"ask for the ACL operation {operation} on {owner}"


def parse_resource(text: str, next_word: str = "") -> Resource:
    """Parse "topic/NAME", "broker/ID", "brokers", "group/NAME", "user/NAME", "users" and so on. Raises UsageError.

    next_word: the next word on the command line, for the hint if it is a name after a space instead of a slash.
    """
    from kctl.cluster.topic_names import check_name

    kind, slash, name = text.partition("/")
    if text in _OF_ALL:
        return Resource(_OF_ALL[text], "")
    if not slash or not name:
        raise UsageError(f"{text!r} is not a resource with configs", hint=_suggestion(text, next_word) + _HINT)
    if kind == "topic":
        check_name(name)
        return Resource.topic(name)
    if kind == "broker":
        if not (name.isascii() and name.isdigit() and int(name) < 2**31):
            raise UsageError(f"broker/{name}: a broker id is a number", hint="run `kctl broker list` to see the ids")
        return Resource.broker(int(name))
    if kind in _NAMED:
        return Resource(_NAMED[kind], name)
    near = did_you_mean(kind, ("topic", "broker", *_NAMED))
    raise UsageError(
        f"{text!r} is not a resource with configs: unknown kind {kind!r}", hint=f"{near} {_HINT}" if near else _HINT
    )


def _suggestion(text: str, next_word: str) -> str:
    """Return "did you mean topic/orders? " for "orders", and for "topic" if the next word is "orders"."""
    from kctl.cluster.topic_names import fault_of

    path = f"topic/{text}"
    if text in {"topic", "broker", *_NAMED}:
        text, path = next_word, f"{text}/{next_word}"
    return "" if not text or fault_of(text) else f"did you mean {path}? "
