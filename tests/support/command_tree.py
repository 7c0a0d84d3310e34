"""All commands of kctl and their help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kctl.commands.terminal.examples import Example, split_examples

# Commands that do not change a cluster, a user's file or a context. All others have --dry-run.
READING = {
    "cluster status", "cluster list", "cluster logs", "cluster env", "cluster health", "doctor", "cluster diagnose",
    "context list", "context show", "context test",
    "playbook status",
    "topic list", "topic describe", "topic offsets", "topic export", "topic watch",
    "topic reassign show", "topic reassign status", "topic reassign verify",
    "config list", "config get", "config explain", "config diff",
    "zk ls", "zk get", "zk tree", "zk stat", "zk acl", "zk watch",
    "leader status",
    "broker list", "broker describe", "broker config", "broker log-dirs", "broker api-versions", "broker features",
    "broker loggers list", "controller", "feature list", "quorum recover", "quorum status",
    "group list", "group describe", "group members", "lag",
    "acl list", "acl explain", "user list", "quota list",
    "transaction list", "transaction describe", "transaction producers", "transaction hanging",
    "segment dump", "segment find", "segment stats", "segment diff",
    "history lag", "history retention", "history trends", "history report",
    "spark lag", "spark retention", "spark trends", "spark report",
    "playbook list", "playbook show", "playbook lint", "playbook schema",
    "runtime list", "runtime verify", "completion",
}  # fmt: skip


def every_command() -> Iterator[tuple[str, Any]]:
    """Yield the path of each command, e.g. `topic list`, with its click command. Groups are skipped."""
    from kctl.commands import app

    for name in app.GROUPS:
        yield from _below(name, app.load(name))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name in command.commands:
        yield from _below(f"{path} {name}", command.commands[name])


def examples_of(command: Any) -> list[Example]:
    """Return the examples of a command's help."""
    return split_examples(command.help)[1]
