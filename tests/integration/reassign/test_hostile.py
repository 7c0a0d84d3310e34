"""What else happens at night: two at once, another machine, a disk that is full, a journal that is no journal, topics
that go away, and others who meddle while a run is under way. Never a traceback, always a way out, nothing left behind.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl_testing import SCRIPT, Result
from reassign_testing import Arena

pytestmark = pytest.mark.long

SLOW = ("--throttle", "150kB/s")
FAST = ("--throttle", "50MB/s")


def _topic_and_plan(arena: Arena, *, size: int = 600_000) -> tuple[str, str]:
    """Two partitions that are to go from brokers 1 and 2 to 1 and 3."""
    topic = arena.make_topic("orders", [[1, 2], [1, 2]], size=size)
    return topic, arena.write_plan({(topic, 0): [1, 3], (topic, 1): [1, 3]})


def _no_traceback(*results: Result) -> None:
    for result in results:
        assert "Traceback" not in result.err, str(result)
        assert "Unexpected" not in result.err, str(result)


def test_two_at_once(arena: Arena) -> None:
    """The second apply is refused, from this machine by the journal and from another by what moves."""
    topic, plan = _topic_and_plan(arena)
    configs = arena.configs()
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        second = arena.reassign("apply", plan)
        elsewhere = arena.on_another_machine()
        third = elsewhere.reassign("apply", plan)
        resumed = arena.reassign("resume")
        _, err = process.communicate(timeout=60)
    _no_traceback(second, third, resumed)
    assert (second.code, third.code, resumed.code) == (4, 4, 4), f"{second}\n{third}\n{resumed}"
    assert f"{topic}-0" in third.err
    assert process.returncode == 0, err
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}
    assert arena.configs() == configs


def test_refused_resume_keeps_the_request_of_another(arena: Arena) -> None:
    """A cancel waits for the run to let go; a resume that comes meanwhile is refused and takes nothing away."""
    topic, plan = _topic_and_plan(arena, size=1_500_000)
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        (journal,) = arena.journals()
        request = journal.with_suffix(".request")
        request.write_text("nothing that is understood")
        assert arena.reassign("resume").code == 4
        assert request.exists()
        cancelled = arena.reassign("cancel")
        process.communicate(timeout=30)
    assert cancelled.code == 0, str(cancelled)
    assert not request.exists()
    assert arena.replicas(topic) == {0: (1, 2), 1: (1, 2)}


def test_status_and_cancel_from_another_machine(arena: Arena) -> None:
    """Without the journal there is nothing to cancel, but status shows what moves."""
    topic, plan = _topic_and_plan(arena)
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        elsewhere = arena.on_another_machine()
        status, cancel = elsewhere.reassign("status"), elsewhere.reassign("cancel")
        process.communicate(timeout=60)
    _no_traceback(status, cancel)
    assert topic in status.out, str(status)
    assert cancel.code == 4, str(cancel)
    assert process.returncode == 0
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}


def test_journal_cannot_be_written(arena: Arena) -> None:
    """No journal, no change."""
    topic, plan = _topic_and_plan(arena, size=0)
    before = arena.snapshot()
    state = Path(arena.kctl.environment["XDG_STATE_HOME"])
    (state / "kctl").mkdir(parents=True)
    (state / "kctl/reassignments").write_text("in the way")
    done = arena.reassign("apply", plan, *FAST)
    _no_traceback(done)
    assert done.code in {4, 5}, str(done)
    assert arena.snapshot() == before
    assert arena.replicas(topic)[0] == (1, 2)


@pytest.mark.parametrize("kib", [1, 2])
def test_disk_of_the_journal_is_full(arena: Arena, kib: int) -> None:
    """A limit on the size of files stands for a full disk. The run stops, and `resume` ends it when there is room."""
    topic, plan = _topic_and_plan(arena, size=0)
    configs = arena.configs()
    command = f'ulimit -f {kib}; exec "$0" "$@"'
    argv = ["bash", "-c", command, str(SCRIPT), "topic", "reassign", "apply", plan, "--yes", *FAST]
    argv += ["--max-concurrent-moves", "1"]
    done = subprocess.run(argv, env=arena.kctl.environment, capture_output=True, text=True, timeout=60, check=False)
    result = Result(tuple(argv), done.returncode, done.stdout, done.stderr, 0)
    _no_traceback(result)
    assert result.code == 5, str(result)
    assert "journal" in result.err
    again = arena.reassign("resume")
    assert again.code in {0, 4}, str(again)
    if again.code == 4:  # not even its first entry was written
        assert arena.configs() == configs
        arena.reassign("apply", plan)
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}
    assert arena.configs() == configs


def _cut_in_the_middle(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 3])


def _garbage_at_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x00\xff garbage\n")


def _other_steps(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"step":"batch_done","batch":7}\n{"step":"to the moon"}\n')


def _other_types(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"partitions":[', b'"partitions":[7,'))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [_cut_in_the_middle, _garbage_at_the_end, _other_steps, _other_types, _empty])
def test_journal_is_damaged(arena: Arena, damage: Callable[[Path], None]) -> None:
    """It is told which file is bad; nothing is guessed."""
    topic, plan = _topic_and_plan(arena, size=0)
    arena.killed("after", "batch_start", "apply", plan, *FAST)
    (path,) = arena.journals()
    damage(path)
    before = arena.snapshot()
    results = [arena.reassign(command) for command in ("status", "resume", "cancel", "pause")]
    _no_traceback(*results)
    for result in results[1:]:
        assert result.code in {2, 4}, str(result)
    assert arena.snapshot() == before
    assert arena.replicas(topic)[0] == (1, 2)


def test_topic_deleted_meanwhile(arena: Arena) -> None:
    """The run says so and stops; cancel ends it, and other topics' throttles are as before."""
    gone = arena.make_topic("gone", [[1, 2]], size=600_000)
    kept = arena.make_topic("kept", [[1, 2]], size=600_000)
    configs = {name: values for name, values in arena.configs().items() if gone not in name}
    plan = arena.write_plan({(gone, 0): [1, 3], (kept, 0): [1, 3]})
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(gone)
        arena.delete_topic(gone)
        _, err = process.communicate(timeout=60)
    assert process.returncode in {1, 5}, err
    assert gone in err
    assert "Traceback" not in err
    assert "reassign resume`" not in err, "it would stop at the same again"
    if process.returncode == 5:
        assert "end this run and its moves in flight with `kctl topic reassign cancel`" in err
        ended = arena.reassign("cancel")
        assert ended.code == 0, str(ended)
    arena.wait_still(kept)
    assert arena.configs() == configs


def test_partitions_added_meanwhile(arena: Arena) -> None:
    """To a topic whose batch comes later (Kafka refuses it for one that moves): the plan's own are not concerned."""
    topics = [arena.make_topic(name, [[1, 2]], size=500_000) for name in ("one", "other")]
    configs = arena.configs()
    plan = arena.write_plan({(topic, 0): [1, 3] for topic in topics})
    with arena.running("apply", plan, *SLOW, "--max-concurrent-moves", "1") as process:
        arena.wait_moving(*topics)
        (later,) = {*topics} - {topic for topic, _ in arena.moving()}
        arena.add_partitions(later, 2)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert [arena.replicas(topic)[0] for topic in topics] == [(1, 3), (1, 3)]
    assert len(arena.replicas(later)) == 2
    assert arena.configs() == configs


def test_somebody_cancels_meanwhile(arena: Arena) -> None:
    """The move was taken back behind our back: said, and no success is reported."""
    topic, plan = _topic_and_plan(arena)
    configs = arena.configs()
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        arena.alter({(topic, 0): None})
        _, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert f"{topic}-0" in err
    resumed = arena.reassign("resume", *FAST)
    assert resumed.code in {0, 5}, str(resumed)
    if resumed.code == 5:
        assert arena.reassign("cancel").code == 0
    else:
        assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}
    assert arena.moving() == {}
    assert arena.configs() == configs


def test_somebody_redirects_meanwhile(arena: Arena) -> None:
    """A foreign target in place of ours: not waited for in vain, not overwritten, and cancel leaves it alone."""
    topic, plan = _topic_and_plan(arena)
    configs = arena.configs()
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        arena.alter({(topic, 0): [1, 4]})
        _, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert f"{topic}-0" in err
    ended = arena.reassign("cancel")
    _no_traceback(ended)
    arena.wait_still(topic)
    assert arena.replicas(topic)[0] == (1, 4), "what someone else asked for came about"
    assert arena.reassign("resume").code == 4, f"the run has ended\n{ended}"
    assert arena.configs() == configs


def test_somebody_changes_the_throttle_meanwhile(arena: Arena) -> None:
    """An operator's later value stays, and is told."""
    topic, plan = _topic_and_plan(arena)
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        arena.set_configs("brokers", "3", follower_replication_throttled_rate="33000000")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert arena.configs()["brokers/3"] == {"follower.replication.throttled.rate": "33000000"}
    assert "broker 3" in err
    assert "33000000" in err or "33 MB/s" in err


def test_somebody_takes_the_throttle_away_meanwhile(arena: Arena) -> None:
    """As the Java tool's --verify and --cancel do."""
    topic, plan = _topic_and_plan(arena)
    configs = arena.configs()
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        for broker in ("1", "2", "3"):
            arena.set_configs(
                "brokers", broker, leader_replication_throttled_rate=None, follower_replication_throttled_rate=None
            )
        arena.set_configs(
            "topics", topic, leader_replication_throttled_replicas=None, follower_replication_throttled_replicas=None
        )
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert arena.configs() == configs
    assert "someone else removed follower.replication.throttled.rate, which this run had set to 150000" in err


def test_another_rate_leaves_what_somebody_else_set(arena: Arena) -> None:
    """A rate and entries of lists that somebody set while the run was stopped are there during it and afterwards."""
    topic, plan = _topic_and_plan(arena)
    lists = arena.configs()[f"topics/{topic}"]
    with arena.running("apply", plan, *SLOW) as process:
        arena.wait_moving(topic)
        process.kill()
        process.communicate(timeout=20)
    arena.set_configs("brokers", "3", follower_replication_throttled_rate="33000000")
    mine = arena.configs()[f"topics/{topic}"]["leader.replication.throttled.replicas"]
    arena.set_configs("topics", topic, leader_replication_throttled_replicas=f"{mine},7:4")
    status = json.loads(arena.reassign("status", "-o", "json").out)["run"]
    assert status["state"] == "stopped"
    assert status["throttle"] == "the throttle of 150 kB/s is not on everywhere"
    assert ["from 150000 to 33000000" in line for line in status["throttle_changes"]] == [True]
    done = arena.reassign("resume", *FAST, "-o", "json")
    assert done.code == 0, str(done)
    remarks = " ".join(json.loads(done.out)["remarks"])
    for said in ('broker 3: someone else set follower.replication.throttled.rate to "33000000"', '7:4"'):
        assert said in done.err, str(done)
        assert said in remarks
    assert arena.configs()["brokers/3"] == {"follower.replication.throttled.rate": "33000000"}
    assert arena.configs()[f"topics/{topic}"] == {**lists, "leader.replication.throttled.replicas": "7:4"}


def test_no_stdin_no_stderr(arena: Arena) -> None:
    """Closed descriptors, as from some schedulers."""
    topic, plan = _topic_and_plan(arena, size=0)
    command = 'exec "$0" "$@" <&- 2>&-'
    argv = ["bash", "-c", command, str(SCRIPT), "topic", "reassign", "apply", plan, "--yes", "-o", "json"]
    done = subprocess.run(argv, env=arena.kctl.environment, stdout=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}


def test_reader_leaves(arena: Arena) -> None:
    """stdout is a pipe that nobody reads any more: the run ends as it should."""
    topic, plan = _topic_and_plan(arena, size=0)
    read, write = os.pipe()
    os.close(read)
    argv = [str(SCRIPT), "topic", "reassign", "apply", plan, "--yes", *FAST]
    done = subprocess.run(
        argv, env=arena.kctl.environment, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(write)
    assert "Traceback" not in done.stderr
    assert arena.replicas(topic) == {0: (1, 3), 1: (1, 3)}
    assert arena.reassign("resume").code == 4, "the run has ended"
