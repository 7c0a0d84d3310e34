"""What is wrong with the nodes of a quorum, one finding per node and problem. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kctl.quorum.recover import NodeStatus, QuorumFinding, QuorumMember, QuorumSeverity, VoterSet, best, position
from kctl.quorum.recover_files import NodeFiles
from kctl.quorum.recover_log import LogVoter

_PROBLEM, _NOTE = QuorumSeverity.PROBLEM, QuorumSeverity.NOTE


def find_problems(
    nodes: Sequence[NodeFiles], voters: VoterSet, members: Sequence[QuorumMember], others: Sequence[QuorumMember]
) -> list[QuorumFinding]:
    """Return all findings, problems first."""
    findings = [
        *_clusters(nodes),
        *_leaders(nodes, voters),
        *(finding for member in members for finding in _of_member(member, nodes, voters)),
        *(finding for node in nodes for finding in _votes(node, voters)),
        *_lags(members),
        *_other_copies(members, others),
    ]
    return sorted(findings, key=lambda finding: finding.severity is _NOTE)


def _clusters(nodes: Sequence[NodeFiles]) -> Iterator[QuorumFinding]:
    by_cluster: dict[str, list[str]] = {}
    for node in nodes:
        if node.cluster_id is not None:
            by_cluster.setdefault(node.cluster_id, []).append(str(node.node_id))
    if len(by_cluster) > 1:
        parts = [f"{cluster} (node {', '.join(ids)})" for cluster, ids in by_cluster.items()]
        yield QuorumFinding(
            "cluster_ids", _PROBLEM, "cluster", f"the log dirs belong to {len(by_cluster)} clusters: {'; '.join(parts)}"
        )


def _leaders(nodes: Sequence[NodeFiles], voters: VoterSet) -> Iterator[QuorumFinding]:
    """Find two leaders of one epoch: a voter that lost its vote has voted twice."""
    leaders: dict[int, dict[int, list[str]]] = {}
    for node in nodes:
        if node.state is not None and node.state.leader_id is not None and node.cluster_id == voters.cluster_id:
            by_leader = leaders.setdefault(node.state.leader_epoch, {})
            by_leader.setdefault(node.state.leader_id, []).append(str(node.node_id))
    for epoch, by_leader in leaders.items():
        if len(by_leader) > 1:
            parts = [f"{leader} by node {', '.join(ids)}" for leader, ids in sorted(by_leader.items())]
            message = f"epoch {epoch} has several leaders: {'; '.join(parts)}"
            yield QuorumFinding("two_leaders", _PROBLEM, "cluster", message)


def _of_member(member: QuorumMember, nodes: Sequence[NodeFiles], voters: VoterSet) -> Iterator[QuorumFinding]:
    subject = f"controller {member.node_id}"
    node = next((each for each in nodes if str(each.log_dir) == member.log_dir), None)
    text = None if node is None else _status_text(member, node, voters)
    if text is not None:
        yield QuorumFinding(member.status.value, _PROBLEM, subject, text)
    unresolved = member.endpoint_problem is not None and "resolve" in member.endpoint_problem
    if member.status is NodeStatus.NOT_READ:
        if member.endpoint_problem is not None:
            message = f"its log dir was not read, and {member.endpoint} does not respond: {member.endpoint_problem}"
            yield QuorumFinding("unreachable", _PROBLEM, subject, message)
    elif member.process is not None and member.endpoint_problem is not None:
        yield QuorumFinding(
            "endpoint", _PROBLEM, subject,
            f"it runs ({member.process}), but its endpoint in the voters record, {member.endpoint}, does not respond:"
            f" {member.endpoint_problem}",
        )  # fmt: skip
    elif unresolved:
        yield QuorumFinding(
            "endpoint", _PROBLEM, subject,
            f"its endpoint in the voters record, {member.endpoint}, does not respond: {member.endpoint_problem}",
        )  # fmt: skip
    elif member.status is NodeStatus.INTACT and not member.is_up:
        yield QuorumFinding("not_running", _PROBLEM, subject, "its metadata log is intact, but it does not run")


def _status_text(member: QuorumMember, node: NodeFiles, voters: VoterSet) -> str | None:
    if member.status is NodeStatus.MISSING:
        return f"its metadata log in {node.log_dir} is missing: {'; '.join(node.problems)}"
    if member.status is NodeStatus.EMPTY:
        return f"its metadata log in {node.log_dir} is empty, but the cluster had a leader: its data was deleted"
    if member.status is NodeStatus.DAMAGED:
        damage = "; ".join(node.log.damage) if node.log else ""
        return "; ".join([*([f"its metadata log is damaged: {damage}"] if damage else []), *node.problems])
    if member.status is NodeStatus.OTHER_DIRECTORY:
        return (
            f"{node.log_dir} has the directory id {node.directory_id}, but the voters record names"
            f" {member.directory_id}, so the node does not vote"
        )
    if member.status is NodeStatus.OTHER_CLUSTER:
        return f"{node.log_dir} belongs to cluster {node.cluster_id}, not to {voters.cluster_id}"
    return None


def _votes(node: NodeFiles, voters: VoterSet) -> Iterator[QuorumFinding]:
    """Find votes and epochs that contradict the log or the voters."""
    is_voter = any(voter.id == node.node_id for voter in voters.voters)
    if not is_voter or node.log is None or node.cluster_id != voters.cluster_id:
        return
    state = node.state
    if state is None:
        if not node.log.is_empty and not node.problems:
            message = (
                "quorum-state is missing, so the node does not know in which epoch it voted, and for which controller"
            )
            yield QuorumFinding("no_quorum_state", _NOTE, node.subject, message)
        return
    if state.leader_epoch < node.log.last_epoch:
        yield QuorumFinding(
            "stale_vote", _NOTE, node.subject,
            f"quorum-state has epoch {state.leader_epoch}, but the log has epoch {node.log.last_epoch}: the file is"
            " an old copy that lacks later votes",
        )  # fmt: skip
    by_id = {voter.id: voter for voter in voters.voters}
    if state.voted_id is not None and not _is_current(by_id.get(state.voted_id), state.voted_directory_id):
        voted = f"controller {state.voted_id}"
        if state.voted_id in by_id:
            voted += f" with the directory id {state.voted_directory_id}"
        yield QuorumFinding(
            "stale_vote", _NOTE, node.subject,
            f"its vote in epoch {state.leader_epoch} is for {voted}, which is not a voter now",
        )  # fmt: skip


def _is_current(voter: LogVoter | None, directory_id: str | None) -> bool:
    return voter is not None and (directory_id is None or voter.directory_id in {None, directory_id})


def _lags(members: Sequence[QuorumMember]) -> Iterator[QuorumFinding]:
    intact = [member for member in members if member.status is NodeStatus.INTACT]
    ends = [(member.last_epoch or 0, member.log_end_offset or 0) for member in intact]
    for member, end in zip(intact, ends, strict=True):
        was_left = not member.is_up or end[0] < max(ends)[0]  # the log of a running node is not read at one moment
        if end < max(ends) and member.can_lead is False and was_left:
            epoch, offset = max(ends)
            yield QuorumFinding(
                "behind", _NOTE, f"controller {member.node_id}",
                f"its log ends at offset {end[1]} (epoch {end[0]}), before offset {offset} (epoch {epoch}):"
                " voters with a more complete log do not vote for it",
            )  # fmt: skip


def _other_copies(members: Sequence[QuorumMember], others: Sequence[QuorumMember]) -> Iterator[QuorumFinding]:
    """Find a copy of the metadata log that is more complete than that of every intact voter."""
    ends = [
        (member.last_epoch or 0, member.log_end_offset or 0) for member in members if member.status is NodeStatus.INTACT
    ]
    for other in others:
        end = (other.last_epoch or 0, other.log_end_offset or 0)
        if other.status is NodeStatus.OBSERVER and end > max(ends, default=(0, 0)):
            yield QuorumFinding(
                "longer_copy", _NOTE, f"node {other.node_id}",
                f"its copy of the metadata log, up to offset {end[1]} (epoch {end[0]}), is more complete"
                " than those of the intact voters",
            )  # fmt: skip


def best_copy(nodes: Sequence[NodeFiles], voters: VoterSet) -> NodeFiles | None:
    """Return the most complete undamaged copy of the cluster's metadata log, of a voter or an observer."""
    copies = [
        node
        for node in nodes
        if node.log is not None
        and not node.log.damage
        and not node.log.is_empty
        and node.cluster_id == voters.cluster_id
    ]
    return best(copies) if copies and position(best(copies)) > (0, 0) else None
