"""What a rolling restart says before it does anything: the order, what blocks, what is down."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kctl.commands.cluster.rolling_tables import plan_warnings
from kctl.errors import KctlError, NotAuthorized, NotSupported, Refused
from kctl.restart import journals
from kctl.restart.plan import make_plan, read_unfinished, refuse_blocked, refuse_without_election
from kctl.restart.restart_run import RestartOptions
from kctl.topics.elect import why_no_election
from rolling_testing import BROKERS, QUICK, Simulated, restart


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_plan_shows_order_and_blockers_and_changes_nothing() -> None:
    cluster = Simulated(who_controls=1)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster)
    assert [(row.turn, row.broker, row.is_controller) for row in plan.brokers] == [
        (1, 2, False), (2, 3, False), (3, 1, True),
    ]  # fmt: skip
    assert (plan.resumes, plan.blockers, cluster.acted) == (None, (), [])
    refuse_blocked(plan)


def test_what_blocks_is_looked_at_for_ten_seconds_and_refused() -> None:
    behind = Simulated(started_at={3: 0.0}, in_sync_after_s=8)
    assert make_plan(behind, "dev", BROKERS, QUICK, clock=behind).blockers == ()  # it came
    behind = Simulated(started_at={3: 0.0}, in_sync_after_s=80)
    plan = make_plan(behind, "dev", BROKERS, QUICK, clock=behind)
    assert behind.now_s < 15
    with pytest.raises(Refused, match="no broker can be stopped now: t-0 has 1, 2 in sync: 1 would be left"):
        refuse_blocked(plan)
    only = {3: BROKERS[3]}  # its own restart may be the cure, and costs no protection
    assert make_plan(behind, "dev", only, QUICK, clock=behind).blockers == ()
    headless = Simulated(who_controls=None)
    with pytest.raises(Refused, match="has no controller"):
        refuse_blocked(make_plan(headless, "dev", BROKERS, QUICK, clock=headless))


def test_a_broker_that_is_down_before_is_started_first() -> None:
    cluster = Simulated(up={1, 3})
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster)
    assert [row.state for row in plan.brokers] == ["up", "down", "up"]
    assert plan.blockers == ()
    restart(cluster)
    assert cluster.acted == ["start 2", "stop 1", "start 1", "stop 3", "start 3"]
    assert "starting broker 2 first: it is down" in cluster.notes


def _restarted(*brokers: int) -> Path:
    """The journal of an unfinished run that restarted these."""
    with journals.begin("dev", "cluster-id", list(BROKERS.values())) as held:
        for broker in brokers:
            for step in ("stop", "stopped", "start", "started", "in_sync"):
                held.append(step, broker=broker)
    return held.path


def test_a_restarted_broker_that_is_down_comes_first() -> None:
    cluster, path = Simulated(up={2, 3}), _restarted(1)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster, resumes=path, state=read_unfinished(path, None))
    assert [(row.broker, row.state) for row in plan.brokers] == [(1, "down"), (2, "up"), (3, "up")]
    assert (plan.blockers, plan.restarted, plan.left_down) == ((), (), ())
    restart(cluster)
    assert cluster.acted == ["start 1", "stop 2", "start 2", "stop 3", "start 3"]


def test_a_restarted_broker_that_goes_while_it_is_looked_blocks_nothing() -> None:
    cluster, path = Simulated(), _restarted(1)
    cluster.later[1] = lambda: cluster.up.discard(1)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster, resumes=path, state=read_unfinished(path, None))
    assert plan.blockers == ()  # it is brought back before anything else


@pytest.mark.parametrize("going_on", [False, True])
@pytest.mark.parametrize(
    ("hidden", "quorum", "said"),
    [
        (False, None, []),
        (
            True,
            None,
            ["this user may not describe all topics: brokers are stopped"],
        ),
        (False, NotAuthorized("no"), ["this user may not describe the metadata quorum"]),
    ],
)
def test_what_this_user_may_not_see_is_told(
    hidden: bool, quorum: KctlError | None, said: list[str], going_on: bool
) -> None:
    cluster = Simulated(topics_hidden=hidden, quorum=quorum, up={2, 3} if going_on else {1, 2, 3})
    path = _restarted(1) if going_on else None
    state = None if path is None else read_unfinished(path, None)
    plan = make_plan(cluster, "dev", BROKERS, QUICK, clock=cluster, resumes=path, state=state)
    assert plan.blockers == ()
    lines = plan_warnings(plan, 1)
    assert len(lines) == len(said)
    assert all(line.startswith(start) and "ACL" in line for line, start in zip(lines, said, strict=True))


NO_ELECTION = "brokers before 2.2 do not support leader elections on request"


def test_brokers_that_cannot_elect_are_refused_before_the_first_stop() -> None:
    cluster = Simulated(no_election=NO_ELECTION)
    with pytest.raises(NotSupported, match=NO_ELECTION) as caught:
        refuse_without_election(cluster, RestartOptions(), None)
    assert "--no-election" in (caught.value.hint or "")
    refuse_without_election(cluster, RestartOptions(elect=False), None)
    refuse_without_election(Simulated(), RestartOptions(), None)
    path = _restarted(1)
    refuse_without_election(cluster, RestartOptions(), read_unfinished(path, None))  # its brokers may be down


def test_a_run_that_was_begun_all_the_same_comes_to_its_end() -> None:
    """The same command again: of an older kctl, or with the brokers replaced by older ones meanwhile."""
    cluster = Simulated(no_election=NO_ELECTION)
    run = restart(cluster)
    assert (run.state.outcome, cluster.elections, run.elected_count) == ("done", 0, None)
    assert any(NO_ELECTION in note for note in cluster.notes), cluster.notes


@pytest.mark.parametrize(("highest", "why"), [(None, NO_ELECTION), (0, None), (2, None)])
def test_who_can_elect(highest: int | None, why: str | None) -> None:
    client = SimpleNamespace(api_version=lambda key: highest if key == 43 else 9)
    assert why_no_election(client) == why  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("purpose", "command"),
    [
        ("upgrade to 4.4.0", "kctl cluster upgrade dev --to 4.4.0"),
        ("rollback to 3.9.2", "kctl cluster rollback dev"),
        ("finalization of 4.4.0", "kctl cluster finalize dev"),
    ],
)
def test_the_hint_names_a_command_that_resumes_the_other_run(purpose: str, command: str) -> None:
    with journals.begin("dev", "cluster-id", list(BROKERS.values()), purpose) as journal:
        path = journal.path
    with pytest.raises(Refused) as refusal:
        read_unfinished(path, None)
    assert f"`{command}`" in (refusal.value.hint or "")
