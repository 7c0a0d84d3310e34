"""What configs can be set on, as it is written on a command line: `topic/orders`, `broker/1`, `brokers`."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kctl.errors import UsageError

Kind = Literal["topic", "broker", "brokers", "client-metrics", "group"]

# org.apache.kafka.common.config.ConfigResource.Type; the default of all brokers is the broker without a name.
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
RESOURCE_TYPES: dict[Kind, int] = {
    "topic": TOPIC_RESOURCE,
    "broker": BROKER_RESOURCE,
    "brokers": BROKER_RESOURCE,
    "client-metrics": 16,
    "group": 32,
}
_QUOTA_ENTITIES = {"user", "users", "client-id", "clients", "client", "ip", "ips"}
_HINT = "write topic/NAME, broker/ID, brokers (the default of all brokers), group/NAME or client-metrics/NAME"


class Resource(NamedTuple):
    """A topic, a broker by its id, a group, a metrics subscription; `brokers`, without a name: all brokers' default."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.kind

    @property
    def path(self) -> str:
        """As `parse_resource` takes it."""
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


def parse_resource(text: str) -> Resource:
    """«topic/NAME», «broker/ID», «brokers», «group/NAME», «client-metrics/NAME». Raises UsageError."""
    from kctl.topics.names import check_name

    kind, slash, name = text.partition("/")
    if text == "brokers":
        return Resource.brokers()
    if kind in _QUOTA_ENTITIES:
        raise UsageError(
            f"{text!r}: users, client ids and addresses have quotas, no configs", hint="see kctl quota --help"
        )
    if not slash or not name:
        raise UsageError(f"{text!r} is not something that has configs", hint=_HINT)
    if kind == "topic":
        check_name(name)
        return Resource.topic(name)
    if kind == "broker":
        if not (name.isascii() and name.isdigit() and int(name) < 2**31):
            raise UsageError(f"broker/{name}: a broker's id is a number", hint="kctl broker list shows them")
        return Resource.broker(int(name))
    if kind in ("group", "client-metrics"):
        return Resource("group" if kind == "group" else "client-metrics", name)
    raise UsageError(f"{text!r}: {kind!r} is not something that has configs", hint=_HINT)
