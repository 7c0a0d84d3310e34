"""Each shipped playbook on a real cluster: a dry run, a run, a second run that changes nothing, and one that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from books import BookRun, Books
from kctl_testing import eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.usefixtures("one_command_tree", "folder")]
_numbers = count(1)


@pytest.fixture
def topic(books: Books) -> Iterator[str]:
    """A topic of three replicas."""
    name = f"books-{next(_numbers)}"
    books.kctl.ok("topic", "create", name, "--partitions", "3", "--replication-factor", "3")
    yield name
    books.kctl.ok("topic", "delete", name, "--yes")


def _write(books: Books, topic: str, lines: int = 30) -> None:
    """Records, through a file: stdin in process is none."""
    path = Path("records")
    path.write_text("".join(f"{n}\n" for n in range(lines)))
    books.run(str(_playbook(topic, lines)), "--yes")


def _playbook(topic: str, lines: int) -> Path:
    path = Path("write.yaml")
    text = "\\n".join(str(n) for n in range(lines))
    path.write_text(f'playbook: 1\nname: write\nsteps:\n- produce: {{topic: "{topic}"}}\n  stdin: "{text}\\n"\n')
    return path


def _fails(run: BookRun, code: int, step: str) -> None:
    assert (run.code, run.step(step)["state"]) == (code, "failed"), str(run)


def test_set_up_cluster(books: Books) -> None:
    """The fixture set one up."""
    again = books.run("set-up-cluster", "--yes", cluster=Books.NAME)
    assert (again.code, again.status, again.step("create")["state"]) == (0, "ok", "skipped"), str(again)
    assert Books.NAME in again.told("addresses")
    books.kctl.ok("topic", "create", "kctl-set-up-check", "--partitions", "1")  # as a run leaves it that was killed
    tried = books.run("set-up-cluster", "--yes", cluster=Books.NAME)
    assert (tried.code, tried.step("check")["state"]) == (0, "ok"), str(tried)
    assert books.kctl("topic", "describe", "kctl-set-up-check").code == 4
    other = books.run("set-up-cluster", "--yes", cluster=Books.NAME, layout="single")
    _fails(other, 1, "layout")


@pytest.mark.parametrize("layout", ["single", "three-node"])
def test_set_up_each_layout(books: Books, layout: str) -> None:
    dry = books.run("set-up-cluster", "--check", cluster="other", layout=layout, heap="256m")
    assert (dry.code, dry.status) == (0, "would change"), str(dry)
    try:
        made = books.run("set-up-cluster", "--yes", cluster="other", layout=layout, heap="256m")
        assert (made.code, made.status) == (0, "changed"), str(made)
        assert made.step("check")["state"] == "ok"
        assert books.run("set-up-cluster", "--yes", cluster="other", layout=layout).status == "ok"
    finally:
        books.kctl.ok("cluster", "destroy", "other", "--yes", "--confirm-cluster", "other")
        books.kctl.ok("context", "use", Books.NAME)


def test_topic_audit(books: Books, topic: str) -> None:
    found = books.run("topic-audit")
    assert (found.code, found.status) == (0, "ok"), str(found)
    assert books.run("topic-audit", "--check").code == 0
    kept = books.run("topic-audit", min_retention="8d", max_retention="6d")
    assert kept.states()["min-retention"] == kept.states()["max-retention"] == "failed", str(kept)
    assert f"{topic} keeps its records for 7d, less than 8d" in kept.told("min-retention")
    books.kctl.ok("topic", "alter", topic, "--config", "min.insync.replicas=1", "--config",
                  "unclean.leader.election.enable=true", "--yes")  # fmt: skip
    bad = books.run("topic-audit", replication_factor="4")
    _fails(bad, 1, "verdict")
    assert [bad.states()[each] for each in ("replicas", "min-insync", "found")] == ["failed"] * 3
    assert "topic-unclean-election (error)" in bad.told("found")
    assert books.run("topic-audit", exempt=topic).code == 0


def test_consumer_lag_gate(books: Books, topic: str) -> None:
    _write(books, topic)
    group = f"g-{topic}"
    books.kctl.ok("consume", topic, "--group", group, "--from-beginning", "--max-messages", "10", "--quiet")
    behind = books.run("consumer-lag-gate", groups=group, wait="200ms", every="100ms")
    _fails(behind, 1, "lag")
    assert behind.step("lag")["attempts"] == 3
    assert "has a lag of 20" in behind.told("lag")
    for options in ((), ("--check",)):
        fine = books.run("consumer-lag-gate", *options, groups=group, max_lag="20")
        assert (fine.code, fine.status) == (0, "ok"), str(fine)
    _fails(books.run("consumer-lag-gate", groups=group, max_lag="20", members="true"), 1, "members")
    _fails(books.run("consumer-lag-gate", groups=group, topics="__consumer_offsets"), 1, "begun")
    _fails(books.run("consumer-lag-gate", groups="nobody"), 4, "groups")


def test_preferred_leader_rebalance(books: Books) -> None:
    books.kctl.ok("topic", "create", "skewed", "--replica-assignment", "1:2:3,1:2:3,1:2:3")
    books.kctl.ok("topic", "reassign", "plan", "--leaders-only", "--topic", "skewed", "--out", "skewed.json")
    books.kctl.ok("topic", "reassign", "apply", "skewed.json", "--no-elect", "--yes")
    dry = books.run("preferred-leader-rebalance", "--check", topics="skewed")
    assert (dry.code, dry.step("elect")["state"]) == (0, "would change"), str(dry)
    done = books.run("preferred-leader-rebalance", "--yes", topics="skewed")
    assert (done.code, done.status) == (0, "changed"), str(done)
    assert "lead 3 of 3 partitions (before: 1)" in done.told("summary")
    again = books.run("preferred-leader-rebalance", "--yes", topics="skewed", spread="true")
    assert (again.code, again.status) == (0, "ok"), str(again)
    _fails(books.run("preferred-leader-rebalance", "--yes", topics="nothing"), 4, "before")
    books.kctl.ok("topic", "delete", "skewed", "--yes")


def test_change_retention(books: Books, topic: str) -> None:
    _write(books, topic)
    late = books.run(
        "change-retention", "--yes", topic=topic, retention="1h", wait="200ms", every="100ms", restore="true"
    )
    _fails(late, 1, "watched")
    assert late.states()["unset"] == "changed"
    assert books.kctl.json("config", "get", f"topic/{topic}", "retention.ms")[0]["source"] == "default"
    dry = books.run("change-retention", "--check", topic=topic, retention="1s")
    assert (dry.code, dry.step("change")["state"]) == (0, "would change"), str(dry)
    wait = f"{within(30):.0f}s"
    done = books.run("change-retention", "--yes", topic=topic, retention="1s", wait=wait, every="500ms")
    assert (done.code, done.status) == (0, "changed"), str(done)
    assert done.told("was").endswith("retention.ms 604800000 (default), retention.bytes -1 (default)")
    again = books.run("change-retention", "--yes", topic=topic, retention="1s")
    assert (again.code, again.status) == (0, "ok"), str(again)
    _fails(books.run("change-retention", "--yes", topic=topic), 1, "asked")


def test_reset_group_by_time(books: Books, topic: str, folder: Path) -> None:
    _write(books, topic)
    group = f"g-{topic}"
    books.kctl.ok("consume", topic, "--group", group, "--from-beginning", "--max-messages", "10", "--quiet")
    given = {"group": group, "to": "2020-01-01T00:00:00Z"}
    dry = books.run("reset-group-by-time", "--check", **given)
    assert (dry.code, dry.step("reset")["state"]) == (0, "would change"), str(dry)
    _fails(books.run("reset-group-by-time", "--yes", **given, max_read_again="9"), 1, "bounded")
    assert not list(folder.glob("g-*.json"))
    done = books.run("reset-group-by-time", "--yes", **given)
    assert (done.code, done.status) == (0, "changed"), str(done)
    assert "reads 10 messages again and skips 0" in done.told("summary")
    again = books.run("reset-group-by-time", "--yes", **given)
    assert (again.code, again.status) == (0, "ok"), str(again)
    (saved,) = folder.glob("g-*.json")
    books.kctl.ok("group", "import", str(saved), "--yes")
    assert books.kctl.json("lag", group, "--by", "group")[0]["lag"] == 20
    books.kctl.ok("topic", "alter", topic, "--partitions", "4", "--yes")
    wider = books.run("reset-group-by-time", "--yes", **given, topics=topic)
    assert (wider.code, wider.status) == (0, "changed"), str(wider)
    assert {row["partition"] for row in books.kctl.json("lag", group)} == {0, 1, 2, 3}
    _fails(books.run("reset-group-by-time", "--yes", group="nobody", to="2020-01-01T00:00:00Z"), 4, "empty")


def test_decommission_replace_and_expand(books: Books, topic: str) -> None:
    """4 leaves, 4 gets what 3 had, 3 comes back."""
    dry = books.run("decommission-broker", "--check", broker="4")
    assert dry.code == 0, str(dry)
    gone = books.run("decommission-broker", "--yes", broker="4")
    assert (gone.code, gone.status) == (0, "changed"), str(gone)
    assert _replicas(books)[4] == 0
    again = books.run("decommission-broker", "--yes", broker="4")
    assert (again.code, again.status) == (0, "ok"), str(again)
    held = _replicas(books)
    replaced = books.run("decommission-broker", "--yes", broker="3", replacement="4")
    assert replaced.code == 0, str(replaced)
    assert _replicas(books) == {**held, 3: 0, 4: held[3]}
    _fails(books.run("decommission-broker", "--yes", broker="9"), 1, "there")

    assert books.run("expand-cluster", "--check", brokers="3").code == 0
    grown = books.run("expand-cluster", "--yes", brokers="3")
    assert (grown.code, grown.status) == (0, "changed"), str(grown)
    assert _replicas(books)[3] > 0
    again = books.run("expand-cluster", "--yes", brokers="3")
    assert (again.code, again.status) == (0, "ok"), str(again)
    _fails(books.run("expand-cluster", "--yes", brokers="9"), 4, "there")


def test_decommission_a_broker_that_is_gone(books: Books, topic: str) -> None:
    """It comes back afterwards, empty, for the other tests."""
    held = next(row for row in books.kctl.json("broker", "list") if row["replica_count"] and not row["is_controller"])
    leaves = held["broker"]
    books.kctl.ok("cluster", "kill", Books.NAME, str(leaves), "--yes")
    try:
        eventually(lambda: _states(books)[leaves] == "down", seconds=within(60), what="a broker that is down")
        gone = books.run("decommission-broker", "--yes", broker=str(leaves), dead="true")
        assert (gone.code, gone.status) == (0, "changed"), str(gone)
        assert leaves not in _states(books)
    finally:
        books.kctl.ok("cluster", "start", Books.NAME)
    eventually(lambda: books.kctl("cluster", "health").code == 0, seconds=within(60), what="healthy")
    books.kctl.ok("leader", "elect", "--preferred", "--yes")


def _states(books: Books) -> dict[int, str]:
    seen = books.kctl("broker", "list", "-o", "json")  # 5 while one does not answer
    return {row["broker"]: row["state"] for row in json.loads(seen.out)}


def _replicas(books: Books) -> dict[int, int]:
    return {row["broker"]: row["replica_count"] for row in books.kctl.json("broker", "list")}


def test_nightly_health_report(books: Books, topic: str, folder: Path) -> None:
    fine = books.run(
        "nightly-health-report", "--junit", "report.xml", max_disk_percent="100",
        ignore_rules='["temporary-log-dirs"]',  # a test's folders are in /tmp
    )  # fmt: skip
    assert (fine.code, fine.status) == (0, "ok"), str(fine)
    assert 'failures="0"' in (folder / "report.xml").read_text()
    assert topic in [each["topic"] for each in fine.step("topics")["value"]]
    bad = books.run("nightly-health-report", "--check", fail_on="info", max_disk_percent="100")
    _fails(bad, 1, "verdict")
    assert bad.states()["disks"] == "ok"  # all is looked at


def test_rolling_restart(books: Books, topic: str) -> None:
    dry = books.run("rolling-restart", "--check", cluster=Books.NAME)
    assert (dry.code, dry.step("restart")["state"]) == (0, "would change"), str(dry)
    done = books.run("rolling-restart", "--yes", cluster=Books.NAME, brokers="1", stable_checks="1")
    assert (done.code, done.status) == (0, "changed"), str(done)
    _fails(books.run("rolling-restart", "--yes"), 1, "how")
    books.kctl.ok("topic", "create", "alone", "--partitions", "1", "--replication-factor", "1")
    _fails(books.run("rolling-restart", "--yes", cluster=Books.NAME, unprotected="false"), 1, "protected")
    books.kctl.ok("topic", "delete", "alone", "--yes")
    eventually(lambda: books.kctl("cluster", "health").code == 0, seconds=within(30), what="healthy")


def test_reliability_validation(books: Books) -> None:
    """The validations themselves run in tests of their own; here the plan, and that nothing is done unasked."""
    dry = books.run("reliability-validation", "--check")
    assert (dry.code, dry.step("validate")["state"]) == (0, "would change"), str(dry)
    asked = books.kctl("playbook", "run", "reliability-validation")
    assert asked.code == 4, str(asked)
