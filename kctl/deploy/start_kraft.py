"""Start the nodes of a KRaft layout: format once, start dedicated controllers, then the nodes with brokers."""

from __future__ import annotations

from collections.abc import Collection

from kctl.deploy.formatting import format_nodes
from kctl.deploy.layout import BrokerNode, ControllerNode, Node
from kctl.deploy.quorum import read_quorum
from kctl.deploy.start_run import StartRun, await_answers, await_in_sync, check_alive, spawn_node, too_slow
from kctl.deploy.waiting import wait_until


def start_kraft(run: StartRun, nodes: Collection[Node]) -> None:
    """Start these nodes and wait until the quorum has a leader and the brokers serve.

    Raises OperationFailed (a format failed, a process died), TimedOut.
    """
    members = [node for node in nodes if isinstance(node, (BrokerNode, ControllerNode))]
    run.progress.update("formatting the log dirs")
    format_nodes(run.host, run.spec, members, run.java)
    # A broker can hang for minutes if it registers with a controller that loses the leadership at that moment (seen
    # with 4.4.0, in the first elections of a quorum). So brokers start when the controllers have a stable leader.
    combined = not run.spec.controllers
    for node in members:
        if combined or isinstance(node, ControllerNode):
            spawn_node(run, node)
    _await_quorum(run)
    for node in members:
        if not combined and isinstance(node, BrokerNode):
            spawn_node(run, node)
    if run.broker_ids:
        await_answers(run)
        await_in_sync(run)


def _await_quorum(run: StartRun) -> None:
    """Wait for a leader that a majority follows (it has a high watermark), if enough voters are expected to run."""
    expected = {node.id for node in run.expected}
    voters = run.spec.voters
    live = [voter for voter in voters if voter.id in expected]
    if len(live) <= len(voters) // 2:
        return  # some nodes stay down on purpose: there is no quorum to wait for

    def elected() -> bool:
        check_alive(run)
        run.progress.update("waiting for the metadata quorum", 0, len(run.expected))
        quorum = read_quorum(run.spec, [voter.id for voter in live])
        return quorum is not None and quorum.leader_id is not None and quorum.high_watermark > 0

    if not wait_until(elected, run.deadline):
        node = next((n for n in run.spec.nodes if n.id == live[0].id), None)
        raise too_slow(run, ["the metadata quorum has no leader"], node)
