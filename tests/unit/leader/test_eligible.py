"""What an unclean election is in the presence of eligible leader replicas (KIP-966).

A fake client, because a cluster with eligible leader replicas takes four brokers, two of which have died: that is in
tests/integration/topics/test_eligible_and_cordoned.py.
"""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from kctl.cluster import eligible
from kctl.cluster.eligible import Eligible, unchanged_eligible
from kctl.commands.leader import unclean as leader_unclean
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError, NotAuthorized, NotFound, Refused
from kctl.leader import operations
from kctl.leader.election import plan_unclean
from kctl.leader.losses import UncleanLoss
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FOUND = {T0: Eligible((2, 3)), T1: Eligible((), (4,))}


@pytest.mark.parametrize(
    ("up", "eligible", "ignore", "elected", "reason"),
    [
        ((4,), (), False, 4, None),
        ((3, 4), (), False, 3, None),
        ((4,), (2,), False, None, "broker 2 is an eligible leader replica, which has every committed record: start it"),
        ((4,), (2, 3), False, None, "brokers 2, 3 are eligible leader replicas, which have every committed record"),
        ((4,), (2, 3), True, 4, None),
        # One that is up: the controller will elect it without being asked.
        ((3, 4), (2, 3), False, None, "broker 3 is an eligible leader replica and up: the controller will elect it"),
        ((3, 4), (2, 3), True, None, "broker 3 is an eligible leader replica and up"),
        ((), (2,), False, None, "all its replicas are on brokers that are down: 2, 3, 4"),
        ((), (2,), True, None, "all its replicas are on brokers that are down"),
    ],
)
def test_no_other_replica_is_proposed(
    up: tuple[int, ...], eligible: tuple[int, ...], ignore: bool, elected: int | None, reason: str | None
) -> None:
    partition = PartitionState("t", 0, -1, 0, (2, 3, 4), ())
    brokers = {node: Broker(node, "h", 9092) for node in up}
    state = ClusterState("c", 1, brokers, {"t": TopicState("t", False, None, (partition,))})
    (row,) = plan_unclean(state, [partition], eligible={T0: Eligible(eligible)}, ignore_eligible=ignore)
    if reason is None:
        assert (row.result, row.elected, row.reason) == ("would elect", elected, None)
    else:
        assert row.result == "skipped"
        assert reason in (row.reason or "")


@pytest.mark.parametrize(
    ("up", "isr", "eligible", "elected"),
    [
        ((3, 4), (), Eligible((), (4,)), 4),  # PartitionChangeBuilder.canElectLastKnownLeader
        ((3,), (), Eligible((), (4,)), 3),
        ((3, 4), (3,), Eligible((), (4,)), 3),
        ((2, 3, 4), (), Eligible((), (3, 4)), 2),
    ],
)
def test_the_last_known_leader_comes_first(
    up: tuple[int, ...], isr: tuple[int, ...], eligible: Eligible, elected: int
) -> None:
    partition = PartitionState("t", 0, -1, 0, (2, 3, 4), isr)
    brokers = {node: Broker(node, "h", 9092) for node in up}
    state = ClusterState("c", 1, brokers, {"t": TopicState("t", False, None, (partition,))})
    (row,) = plan_unclean(state, [partition], eligible={T0: eligible})
    assert (row.result, row.elected) == ("would elect", elected)


@pytest.mark.parametrize(
    ("end", "known", "eligible", "last_known", "lost"),
    [
        (50, 50, (), (), 0),
        (50, 70, (), (), 20),
        (50, 50, (2, 3), (), None),  # they have more, nobody knows how much
        (50, 70, (2, 3), (), 20),
        (50, 50, (), (2,), None),
        (50, 50, (), (4,), 0),  # it is up, and has no more
        (None, 50, (), (), None),
    ],
)
def test_losses_are_counted_by_them(
    end: int | None, known: int, eligible: tuple[int, ...], last_known: tuple[int, ...], lost: int | None
) -> None:
    loss = UncleanLoss("t", 0, 4, end, known, {4: end}, (2, 3), None, eligible, last_known)
    assert loss.known_lost == lost
    assert ("brokers 2, 3 have every committed record" in str(loss)) == bool(eligible)
    assert ("broker 2 was the last leader" in str(loss)) == (last_known == (2,))


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ({T0: Eligible((3, 2)), T1: Eligible((), (4,))}, None),
        ({T0: Eligible((2,)), T1: Eligible((), (4,))}, "t-0: eligible leader replicas was 2,3 and is now 2"),
        ({T0: Eligible(), T1: Eligible((), (4,))}, "t-0: eligible leader replicas was 2,3 and is now none"),
        ({T0: Eligible((2, 3)), T1: Eligible((4,))}, "t-1: eligible leader replicas was none and is now 4"),
        ({T0: Eligible((2, 3)), T1: Eligible()}, "t-1: last known eligible leader replicas was 4 and is now none"),
        ({}, "election of partition t-0 no longer exists"),
        (NotFound("topic t does not exist"), "election of partition t-0 no longer exists"),
        (NotAuthorized("no"), "no"),
    ],
)
def test_they_are_read_again(monkeypatch: pytest.MonkeyPatch, now: Any, says: str | None) -> None:
    basis = unchanged_eligible(cast(ClusterClient, None), {tp: FOUND[tp] for tp in (T0, T1)})
    monkeypatch.setattr(eligible, "read_eligible", lambda *_: _given(now))
    if says is None:
        basis.check()
        return
    with pytest.raises(KctlError) as caught:
        basis.check()
    assert says in caught.value.message


def _given(answer: Any) -> Any:
    if isinstance(answer, KctlError):
        raise answer
    return answer


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("ignore", [False, True])
def test_no_election_is_held_when_another_replica_became_eligible_meanwhile(
    monkeypatch: pytest.MonkeyPatch, ignore: bool, changed: bool
) -> None:
    """Between the question and the election, which would lose what that replica has.

    The calls to the cluster are replaced: no cluster makes a replica eligible while nobody leads.
    """
    partition = PartitionState("t", 0, -1, 0, (2, 3, 4), ())
    state = ClusterState("c", 1, {4: Broker(4, "h", 9092)}, {"t": TopicState("t", False, "id", (partition,))})
    now = {T0: Eligible((2,) if ignore else ())}
    held: list[Any] = []

    def answer(*_: object, **__: object) -> None:
        if changed:
            now[T0] = Eligible((2, 3))

    def carry_out(_: object, plan: Any, **__: object) -> Any:
        held.extend(plan)
        return plan

    for module in (eligible, operations):  # the basis is read by the one, the plan by the other
        monkeypatch.setattr(module, "read_eligible", lambda *_: dict(now))
    monkeypatch.setattr(operations, "find_losses", lambda *_: [UncleanLoss("t", 0, 4, 50, 50, {4: 50}, (2, 3), None)])
    monkeypatch.setattr(leader_unclean, "confirm_name", answer)
    monkeypatch.setattr(operations, "carry_out", carry_out)
    client = Answer(metadata=lambda _: state, target=Answer(name="c"))
    inv = Answer(protectors=lambda _: [], confirm_cluster=None, timeout_s=lambda s: s, emit=lambda *_, **__: None)

    def elect() -> None:
        leader_unclean.elect_unclean(
            cast(Invocation, inv), cast(ClusterClient, client), state, [partition],
            named=False, dry_run=False, ignore_eligible=ignore,
        )  # fmt: skip

    if changed:
        with pytest.raises(Refused, match=r"eligible leader replicas was (none|2) and is now 2,3"):
            elect()
    else:
        elect()
    assert bool(held) is not changed
