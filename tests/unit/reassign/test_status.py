"""What `status` says beside its table: throttles, brokers that are waited for, copies between log dirs. No broker."""

from __future__ import annotations

from dataclasses import replace

from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.commands.reassign.tables import status_lines, status_tables, status_warnings
from kctl.commands.terminal.output import jsonable
from kctl.configs.dynamic import Resource
from kctl.model import Broker, PartitionState, TopicPartition, TopicState
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.live_state import LiveState
from kctl.reassign.run.run_plan import RunPlan, begin_entry
from kctl.reassign.run.run_status import (
    MovingPartition,
    ReassignmentStatus,
    RunSummary,
    _throttle_now,
    between_log_dirs,
)
from kctl.reassign.run.settings import ThrottleSetting
from kctl.reassign.run.steps import ReassignmentPhase, ThrottlePhase, replay
from kctl.reassign.run.throttle import Throttle

TP = TopicPartition("t", 0)
B4 = Resource.broker(4)
PLAN = RunPlan("apply", "p.json", "d", "c", "dev", (Reassignment("t", 0, after=(2,), before=(1,)),), ((0,),))
RATE = ThrottleSetting("broker", "4", "leader.replication.throttled.rate", "1000")
MOVE = MovingPartition("t", 0, [4, 2], [4], [1], False, 3, 100)
QUIET = ReassignmentStatus("prod", "c", None, [], None, [], {}, [])
RUN = RunSummary(
    kind="apply", state=ReassignmentPhase.INCOMPLETE, alive=False, pid=None, journal="j", source="p.json",
    began_at="", last_at="",
    batches=1, batches_done=1, partition_count=1, reached=1, in_flight=0, as_before=0, elsewhere=0, throttle_bytes=None,
    throttle="brokers that were down keep the throttle of the run", throttle_changes=[], throttles_left=["broker 4"],
)  # fmt: skip


def test_a_cluster_at_rest() -> None:
    assert status_lines(QUIET) == [
        "no reassignment of this cluster was started on this machine",
        "no partitions are moving in the cluster",
    ]
    assert status_warnings(QUIET) == []


def test_throttles_that_nobody_here_has_set() -> None:
    said = "\n".join(status_lines(replace(QUIET, throttles=[RATE])))
    assert "throttles are set: rates on broker 4" in said
    assert "if a run of kctl left them" in said


def test_throttles_of_a_run_that_has_a_way_out_of_its_own() -> None:
    said = "\n".join(status_lines(replace(QUIET, run=RUN, throttles=[RATE], todo="`kctl topic reassign resume` …")))
    assert "rates on broker 4" in said
    assert "resume" in said
    assert "--plan" not in said
    (run, _) = status_tables(replace(QUIET, run=RUN))
    assert {"key": "throttle", "value": "brokers that were down keep the throttle of the run: broker 4"} in run.rows


def test_a_throttle_that_somebody_else_took_away() -> None:
    throttle = Throttle(set={B4: {RATE.setting: "1000"}}, before={B4: {RATE.setting: None}})
    state = replay([{"step": "begin", "at": "", **begin_entry(PLAN)}])
    state.throttle, state.throttle_rate, state.throttle_phase = throttle.to_json(), 1000, ThrottlePhase.ON
    assert _throttle_now(state, {B4: {RATE.setting: "1000"}}) == ("the throttle of 1 kB/s is on", [])
    phrase, changes = _throttle_now(state, {B4: {}})
    assert phrase == "the throttle of 1 kB/s is off: someone else removed it"
    assert status_warnings(replace(QUIET, run=replace(RUN, throttle_changes=changes))) == changes
    assert changes == [
        "broker 4: someone else removed leader.replication.throttled.rate, which this run had set to 1000"
    ]
    phrase, changes = _throttle_now(state, {B4: {RATE.setting: "7"}})
    assert phrase == "the throttle of 1 kB/s is not on everywhere"
    assert changes == ["broker 4: someone else changed leader.replication.throttled.rate from 1000 to 7"]
    state.throttle_phase = ThrottlePhase.SETTING
    assert _throttle_now(state, {B4: {}}) == ("the throttle may be on at some brokers", [])


def test_a_receiving_broker_that_is_down() -> None:
    (line,) = status_warnings(replace(QUIET, moving=[MOVE, replace(MOVE, adding=[3])], down=[4]))
    assert line == "broker 4 is down: 1 partition cannot be copied to it until it is up"


def test_throttles_that_cannot_be_read() -> None:
    (line,) = status_warnings(replace(QUIET, throttles_unread={"broker 1": "not authorized", "topic t": "same"}))
    assert line == "cannot read the throttles of broker 1 and 1 more: not authorized"


def test_copies_between_log_dirs() -> None:
    dirs = [LogDir("/a", None, None, [LogDirReplica("t", 0, 10, 0, False)])]
    dirs.append(LogDir("/b", None, None, [LogDirReplica("t", 0, 4, 0, True)]))
    topics = {"t": TopicState("t", False, None, (PartitionState("t", 0, 1, 5, (1, 2), (1, 2)),))}
    live = LiveState({1: Broker(1, "h", 1)}, 1, "c", topics, {}, {1: dirs})
    (row,) = between_log_dirs(live, {TP})
    assert row == MovingPartition("t", 0, [1, 2], [], [], True, 4, 10, broker=1, log_dir="/b")
    (table,) = status_tables(replace(QUIET, moving=[row]))
    assert [shown["replicas"] for shown in table.rows] == ["1:/b"]
    assert jsonable(row)["replicas"] == [1, 2]
