"""A gate that has nothing to check does not pass: names and patterns that choose nothing, groups without a commit.

Spark's commands are in tests/unit/test_spark_lag_command.py and test_report_command.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from group_admin import Admin
from kctl_testing import Kctl, TestCluster

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize(
    "args",
    [
        ("lag", "nothing-here", "--max-lag", "0"),
        ("lag", "nothing-.*", "--max-lag", "0"),
        ("lag", "--match", "nothing-.*", "--max-lag", "0"),
        ("lag", "--match", "nothing-.*"),
        ("lag", "--type", "streams", "--max-lag", "0"),
        ("lag", "--state", "dead", "--max-lag", "0"),
        ("lag", "--topic", "nothing-here", "--max-lag", "0"),
        ("group", "list", "--match", "nothing-.*"),
        ("group", "list", "--match", "nothing-.*", "--state", "stable"),
        ("group", "describe", "nothing-.*"),
        ("group", "describe", "--match", "nothing-.*"),
        ("group", "members", "--match", "nothing-.*"),
        ("group", "export", "--match", "nothing-.*"),
        ("group", "delete", "--match", "nothing-.*", "--dry-run"),
        ("group", "reset-offsets", "--match", "nothing-.*", "--all-topics", "--to-latest", "--dry-run"),
        ("topic", "list", "--match", "nothing-.*"),
        ("topic", "list", "--match", "nothing-.*", "--under-replicated"),
        ("topic", "describe", "--match", "nothing-.*"),
        ("topic", "offsets", "--match", "nothing-.*"),
        ("topic", "export", "--match", "nothing-.*"),
        ("topic", "watch", "--match", "nothing-.*"),
        ("topic", "delete", "--match", "nothing-.*", "--dry-run"),
        ("topic", "alter", "--match", "nothing-.*", "--config", "retention.ms=1000", "--dry-run"),
        ("topic", "truncate", "--match", "nothing-.*", "--all", "--dry-run"),
        ("consume", "--match", "nothing-.*", "--exit-eof"),
        ("capacity", "--from-cluster", "--match", "nothing-.*"),
        ("transaction", "list", "--match", "nothing-.*"),
        ("transaction", "hanging", "--topic", "nothing-here"),
        ("leader", "status", "--topic", "nothing-here"),
        ("leader", "elect", "--preferred", "--topic", "nothing-here"),
        ("broker", "log-dirs", "--topic", "nothing-here"),
        ("topic", "reassign", "plan", "--topic", "nothing-here", "--balance", "replicas"),
    ],
)
def test_nothing_that_matches_is_refused(kctl: Kctl, args: tuple[str, ...]) -> None:
    done = kctl(*args)
    assert done.code == 4, str(done)


def test_names_that_read_like_patterns(kctl: Kctl) -> None:
    done = kctl("lag", "billing-.*", "--max-lag", "0")
    assert (done.code, "for a pattern use --match 'billing-.*'" in done.err) == (4, True)
    done = kctl("group", "describe", "billing-*")
    assert (done.code, "for a pattern use --match 'billing-.*'" in done.err) == (4, True)


def test_rules_that_look_at_nothing(kraft: str, kctl: Kctl) -> None:
    done = kctl("doctor", "--about", "zookeeper", "--bootstrap-server", kraft)
    assert (done.code, "none of the selected rules applies" in done.err) == (4, True)


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
