"""A gate that has nothing to check does not pass: names and patterns that choose nothing, groups without a commit.

Reports over time are in tests/unit/history/test_lag_command.py and test_report_command.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from group_admin import Admin
from kctl.commands.app import GROUPS, load
from kctl_testing import Kctl, TestCluster

pytestmark = pytest.mark.usefixtures("cluster")

NOTHING = ("--match", "nothing-.*")
CASES: list[tuple[str, ...]] = [
    ("lag", "nothing-here", "--max-lag", "0"),
    ("lag", "nothing-.*", "--max-lag", "0"),
    ("lag", *NOTHING, "--max-lag", "0"),
    ("lag", *NOTHING),
    ("lag", "--type", "streams", "--max-lag", "0"),
    ("lag", "--state", "dead", "--max-lag", "0"),
    ("lag", "--topic", "nothing-here", "--max-lag", "0"),
    ("group", "list", *NOTHING),
    ("group", "list", *NOTHING, "--state", "stable"),
    ("group", "describe", "nothing-.*"),
    ("group", "describe", *NOTHING),
    ("group", "members", *NOTHING),
    ("group", "export", *NOTHING),
    ("group", "delete", *NOTHING, "--dry-run"),
    ("group", "reset-offsets", *NOTHING, "--all-topics", "--to-latest", "--dry-run"),
    ("topic", "list", *NOTHING),
    ("topic", "list", *NOTHING, "--under-replicated"),
    ("topic", "describe", *NOTHING),
    ("topic", "offsets", *NOTHING),
    ("topic", "export", *NOTHING),
    ("topic", "watch", *NOTHING),
    ("topic", "delete", *NOTHING, "--dry-run"),
    ("topic", "alter", *NOTHING, "--config", "retention.ms=1000", "--dry-run"),
    ("topic", "truncate", *NOTHING, "--all", "--dry-run"),
    ("consume", *NOTHING, "--exit-eof"),
    ("capacity", "--from-cluster", *NOTHING),
    ("transaction", "list", *NOTHING),
    ("transaction", "hanging", "--topic", "nothing-here"),
    ("leader", "status", "--topic", "nothing-here"),
    ("leader", "elect", "--preferred", "--topic", "nothing-here"),
    ("broker", "log-dirs", "--topic", "nothing-here"),
    ("topic", "reassign", "plan", "--topic", "nothing-here", "--balance", "replicas"),
    ("transaction", "hanging", *NOTHING),
    ("leader", "status", *NOTHING),
    ("leader", "elect", "--preferred", *NOTHING),
    ("leader", "balance", "--dry-run", *NOTHING),
    ("broker", "log-dirs", *NOTHING),
    ("broker", "loggers", "list", *NOTHING),
    ("topic", "reassign", "plan", *NOTHING, "--balance", "replicas"),
]


def commands() -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Each command's words, and its options."""
    todo: list[tuple[tuple[str, ...], Any]] = [((name,), load(name)) for name in GROUPS]
    while todo:
        path, command = todo.pop()
        todo += [((*path, name), each) for name, each in getattr(command, "commands", {}).items()]
        yield path, {name for each in command.params for name in each.opts}


@pytest.mark.parametrize("args", CASES, ids=" ".join)
def test_nothing_that_matches_is_refused(kctl: Kctl, args: tuple[str, ...]) -> None:
    done = kctl(*args)
    assert done.code == 4, str(done)


def test_each_command_with_a_pattern_is_among_them() -> None:
    elsewhere = {"history", "spark"}
    with_pattern = {path for path, options in commands() if "--match" in options and path[0] not in elsewhere}
    assert len(with_pattern) > 20
    missing = {
        path for path in with_pattern if not any(case[: len(path)] == path and NOTHING[0] in case for case in CASES)
    }
    assert not missing


def test_names_that_read_like_patterns(kctl: Kctl) -> None:
    done = kctl("lag", "billing-.*", "--max-lag", "0")
    assert (done.code, "for a pattern use --match 'billing-.*'" in done.err) == (4, True)
    done = kctl("group", "describe", "billing-*")
    assert (done.code, "for a pattern use --match 'billing-.*'" in done.err) == (4, True)


def test_a_group_without_a_known_lag(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    """One that has committed nothing for the topic, and one whose only topic is gone."""
    name, other = topic(), topic()
    admin = Admin(cluster.bootstrap)
    group = f"g-{name}"
    admin.commit(group, name, {0: 0})
    assert kctl("lag", group, "--max-lag", "0").code == 0
    done = kctl("lag", group, "--topic", other, "--max-lag", "0")
    assert (done.code, f"it is unknown for group {group}" in done.err) == (1, True)
    done = kctl("lag", "--match", f"g-{name}", "--topic", other, "--max-lag", "0")
    assert (done.code, "no group has a known lag" in done.err) == (4, True)
