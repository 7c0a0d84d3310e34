"""What holds for every command: an example, the formats, and --dry-run where something is changed."""

from __future__ import annotations

from command_tree import every_command, example_of
from kctl.commands.invocation import KctlCommand
from kctl.commands.operations import WITHOUT_DRY_RUN
from kctl.commands.output import FORMATS

# Commands that change nothing of a cluster, a file of the user's or a context; all others have --dry-run.
READING = {
    "cluster status", "cluster list", "cluster logs", "cluster env", "cluster health", "cluster diagnose",
    "context list", "context show", "context test",
    "topic list", "topic describe", "topic offsets", "topic export", "topic watch",
    "topic reassign show", "topic reassign status", "topic reassign verify",
    "config get", "config explain", "config diff",
    "zk ls", "zk get", "zk tree", "zk stat", "zk acl", "zk watch",
    "leader status",
    "broker list", "broker describe", "broker config", "broker log-dirs", "broker api-versions", "broker features",
    "broker loggers list", "controller",
    "group list", "group describe", "group members", "lag",
    "acl list", "acl explain", "user list", "quota list",
    "transaction list", "transaction describe", "transaction producers", "transaction hanging",
    "segment dump", "segment find", "segment stats", "segment diff",
    "spark lag", "spark retention", "spark trends", "spark report",
    "playbook list", "playbook show", "playbook lint", "playbook schema",
    "runtime list", "runtime verify", "completion",
}  # fmt: skip


def test_every_command_has_an_example() -> None:
    for path, command in every_command():
        assert f"kctl {path}" in example_of(command), path


def test_every_command_takes_every_format() -> None:
    assert FORMATS == ("table", "wide", "json", "yaml", "csv")
    for path, command in every_command():
        assert isinstance(command, KctlCommand), path  # which refuses what is no format before it does anything
        assert any("--output" in param.opts for param in command.params), path


def test_what_changes_something_has_a_dry_run() -> None:
    without = {
        path for path, command in every_command() if not any("--dry-run" in param.opts for param in command.params)
    }
    assert without == READING | set(WITHOUT_DRY_RUN)
