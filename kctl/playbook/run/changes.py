"""Whether an operation changed something: told from what it printed, one rule for each operation that can.

Most say it with the word in `result` of each row. A rule never says «not changed» of what it does not know: a word that
is not among those below, and a value of another shape, count as a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kctl.playbook.own_steps import OWN_STEPS

if TYPE_CHECKING:
    from kctl.playbook.model import Step
    from kctl.playbook.operations import Operation, Operations

Rule = Callable[[Any, Mapping[str, Any]], bool]

# What `result` (of context import: `action`) says of a row where nothing was, or would be, changed.
UNCHANGED_WORDS = frozenset({
    "unchanged", "exists", "already there", "not there", "absent", "skipped", "failed", "left alone",
    "runs", "runs already", "did not run",
})  # fmt: skip


def _words(value: Any, key: str = "result") -> Iterator[str]:
    """The words of all rows, also of those within a row."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            if isinstance(each.get(key), str):
                yield each[key]
            waiting.extend(inner for inner in each.values() if isinstance(inner, (Mapping, list)))
        elif isinstance(each, list):
            waiting.extend(each)


def by_words(value: Any, _arguments: Mapping[str, Any]) -> bool:
    """By the rows' words; without any row nothing was to be done."""
    if not isinstance(value, (list, Mapping)) and value is not None:
        return True
    return any(word not in UNCHANGED_WORDS for word in _words(value))


def by_action(value: Any, _arguments: Mapping[str, Any]) -> bool:
    """By the word in `action`."""
    words = list(_words(value, "action"))
    return not words or any(word not in UNCHANGED_WORDS for word in words)


def always(_value: Any, _arguments: Mapping[str, Any]) -> bool:
    """It changes something whenever it succeeds, or does not say whether it did."""
    return True


# Operations that change nothing without this argument: they print what they would write, or work it out.
ONLY_WITH = {
    "capacity": "measure", "cluster.export": "out", "consume": "group", "group.export": "out",
    "topic.reassign.plan": "out",
}  # fmt: skip


def only_with(operation: str) -> Rule:
    """It changes something when it is given what ONLY_WITH names, and nothing without."""

    def rule(_value: Any, arguments: Mapping[str, Any]) -> bool:
        return arguments.get(ONLY_WITH[operation]) not in (None, False)

    return rule


def any_of(*names: str) -> Rule:
    """One of these is more than nothing; rows with words are judged by them (a dry run's)."""

    def rule(value: Any, arguments: Mapping[str, Any]) -> bool:
        if not isinstance(value, Mapping):
            return by_words(value, arguments)
        if not any(name in value for name in names):
            return True
        return any(value.get(name) for name in names)

    return rule


def _restarted(value: Any, arguments: Mapping[str, Any]) -> bool:
    """Of a rolling restart each broker that it names was, or would be, restarted; forgetting a run changes, too."""
    if isinstance(value, Mapping) and isinstance(value.get("brokers"), list):
        return bool(value["brokers"])
    if not isinstance(value, Mapping) or not isinstance(value.get("started"), Mapping):
        return by_words(value, arguments) if isinstance(value, list) else True
    stopped = value.get("stopped")
    return any_of("started", "resumed")(value["started"], arguments) or (
        isinstance(stopped, Mapping) and any_of("stopped", "killed")(stopped, arguments)
    )


def _reassigned(value: Any, _arguments: Mapping[str, Any]) -> bool:
    """A run has a journal; without one there was nothing to do. A dry run says what it would move."""
    if not isinstance(value, Mapping):
        return value is not None
    if "journal" in value:
        return value["journal"] is not None
    return bool(value.get("moves", 1) or value.get("reorders", 1))


def _balanced(value: Any, arguments: Mapping[str, Any]) -> bool:
    if not isinstance(value, Mapping) or "reorders" not in value:
        return True
    return bool(value["reorders"]) or by_words(value.get("elections"), arguments) or arguments.get("out") is not None


def _produced(value: Any, _arguments: Mapping[str, Any]) -> bool:
    """Records that are in the log, or perhaps are; acks=0 does not tell."""
    if not isinstance(value, Mapping):
        return True
    if "acknowledged" not in value:  # a dry run
        return bool(value.get("records", 1))
    acknowledged = value["acknowledged"]
    return bool(value.get("sent") if acknowledged is None else acknowledged or value.get("unknown"))


RULES: dict[str, Rule] = {
    "capacity": only_with("capacity"),
    "cluster.create": always,
    "cluster.start": any_of("started", "resumed"),
    "cluster.stop": any_of("stopped", "killed"),
    "cluster.restart": _restarted,
    "cluster.warm": always,
    "cluster.destroy": always,
    "cluster.export": only_with("cluster.export"),
    "cluster.kill": always,
    "cluster.pause": always,
    "cluster.unpause": always,
    "context.use": always,
    "context.add": always,
    "context.import": by_action,
    "context.remove": always,
    "topic.create": by_words,
    "topic.alter": by_words,
    "topic.delete": by_words,
    "topic.truncate": by_words,
    "topic.clone": by_words,
    "topic.apply": by_words,
    "topic.reassign.plan": only_with("topic.reassign.plan"),
    "topic.reassign.apply": _reassigned,
    "topic.reassign.pause": always,
    "topic.reassign.resume": always,
    "topic.reassign.cancel": _reassigned,
    "topic.reassign.rollback": _reassigned,
    "config.set": by_words,
    "config.unset": by_words,
    "leader.elect": by_words,
    "leader.balance": _balanced,
    "broker.loggers.set": by_words,
    "produce": _produced,
    "consume": only_with("consume"),
    "group.reset_offsets": by_words,
    "group.export": only_with("group.export"),
    "group.import": by_words,
    "group.delete": by_words,
    "group.delete_offsets": by_words,
    "group.remove_member": by_words,
    "acl.add": by_words,
    "acl.remove": by_words,
    "acl.apply": by_words,
    "user.add": by_words,
    "user.remove": by_words,
    "quota.set": by_words,
    "quota.unset": by_words,
    "transaction.abort": by_words,
    "segment.verify": by_words,
    "history.snapshot": always,
    "spark.warm": any_of("made"),
    "spark.bundle": always,
    "spark.snapshot": always,
    "validate.all": always,
    "validate.broker_loss": always,
    "validate.controller_election": always,
    "validate.leader_election": always,
    "validate.matrix": always,
    "validate.rolling_restart": always,
    "validate.unclean_election": always,
    "validate.zookeeper_loss": always,
    "runtime.install": always,
    "runtime.remove": always,
}


def can_change(operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """Whether an operation with these arguments may change something, as far as can be told before."""
    name = ".".join(operation.command).replace("-", "_")
    return operation.changes and (name not in ONLY_WITH or only_with(name)(None, arguments))


def can_change_step(step: Step, known: Operations) -> bool:
    """The same of a step that is no include."""
    own = OWN_STEPS.get(step.kind)
    if own is not None:
        return own.changes
    return not step.dry_run and can_change(known.find(step.kind), step.arguments)


def may_have_changed(kind: str, *, looks: bool) -> bool:
    """The same of a step that began and did not end, of which a journal says that it is an operation that looks."""
    return OWN_STEPS[kind].changes if kind in OWN_STEPS else not looks


def changed(operation: str, value: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether an operation that ended well changed something; of a dry run, whether it would. False for one that only
    reads; an operation without a rule counts as a change where it can change something.

    value: what it printed; arguments: as they were given to it.
    """
    from kctl.playbook.operations import operations

    known = operations().find(operation)
    if not known.changes:
        return False
    rule = RULES.get(".".join(known.command).replace("-", "_"), always)
    return rule(value, arguments)
