"""Diagnose a metadata quorum without a leader from the files of its nodes. Pure.

An election needs the votes of a majority of the voters. A voter votes only if its log dir has the directory id of the
voters record (KIP-853), and only for a candidate whose log is at least as complete as its own: a higher last epoch, or
the same one and at least the same end (org.apache.kafka.raft.KafkaRaftClient, KIP-595).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kctl.base.text import counted
from kctl.errors import NotHealthy
from kctl.quorum.recover_files import NodeFiles
from kctl.quorum.recover_log import Endpoint, LogVoter


class NodeStatus(str, Enum):
    """The ability of a node to take part in elections.

    intact: it can. empty: the metadata log has no record. missing: there is no metadata log. damaged: Kafka cannot read
    the whole log. other_directory: the voters record names another log dir of this node. other_cluster: the log dir
    belongs to another cluster. not_read: its log dir was not read. observer: it is not a voter.
    """

    INTACT = "intact"
    EMPTY = "empty"
    MISSING = "missing"
    DAMAGED = "damaged"
    OTHER_DIRECTORY = "other_directory"
    OTHER_CLUSTER = "other_cluster"
    NOT_READ = "not_read"
    OBSERVER = "observer"


class ElectionVerdict(str, Enum):
    """The ability of the voters to elect a leader.

    electable: a majority of the voters is intact. no_majority: the majority is lost. undecided: not enough log dirs
    were read.
    """

    ELECTABLE = "electable"
    NO_MAJORITY = "no_majority"
    UNDECIDED = "undecided"


class QuorumSeverity(str, Enum):
    """problem: prevents an election, or keeps a voter from taking part. note: worth knowing."""

    PROBLEM = "problem"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter, or another node whose log dir was read.

    directory_id: in the voters record; for others, that of the log dir. endpoint_problem: why the endpoint does not
    respond; None: it does, or there is no endpoint. last_epoch, log_end_offset: the end of its log. state_epoch,
    leader_id, voted_id: from quorum-state. can_lead: True if a majority would vote for it; None: unknown.
    """

    node_id: int | None
    status: NodeStatus
    directory_id: str | None
    endpoint: str | None
    endpoint_problem: str | None
    log_dir: str | None
    process: str | None
    last_epoch: int | None
    log_end_offset: int | None
    state_epoch: int | None
    leader_id: int | None
    voted_id: int | None
    can_lead: bool | None

    @property
    def is_up(self) -> bool:
        """Return True if a process uses its log dir, or something listens at its endpoint."""
        return self.process is not None or (self.endpoint is not None and self.endpoint_problem is None)


@dataclass(frozen=True, slots=True)
class QuorumFinding:
    """A finding. kind: a stable word. subject: e.g. "controller 2"."""

    kind: str
    severity: QuorumSeverity
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The diagnosis.

    kraft_version: 1 if the voters are in the metadata log, 0 if they are in the controllers' settings. majority: votes
    that an election needs. next_steps: in order, text or commands.
    """

    cluster_id: str | None
    kraft_version: int
    verdict: ElectionVerdict
    summary: str
    majority: int
    voters: tuple[QuorumMember, ...]
    others: tuple[QuorumMember, ...]
    findings: tuple[QuorumFinding, ...]
    next_steps: tuple[str, ...]

    def require_healthy(self) -> None:
        """Raise NotHealthy if something prevents an election, or keeps a voter from taking part."""
        problems = [finding for finding in self.findings if finding.severity is QuorumSeverity.PROBLEM]
        if problems or self.verdict is not ElectionVerdict.ELECTABLE:
            raise NotHealthy(self._verdict_text(problems), details={"findings": [finding.kind for finding in problems]})

    def _verdict_text(self, problems: Sequence[QuorumFinding]) -> str:
        subjects = ", ".join(dict.fromkeys(finding.subject for finding in problems))
        return f"{self.summary}; {counted(len(problems), 'problem')}: {subjects}" if problems else self.summary


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The current voters, from the most complete log of the cluster. reference: the node with this log."""

    cluster_id: str | None
    reference: NodeFiles | None
    voters: tuple[LogVoter, ...]
    kraft_version: int

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1


def voter_set(nodes: Sequence[NodeFiles]) -> VoterSet:
    """Return the voters in the most complete log. Of several clusters, use the one with the most nodes."""
    by_cluster: dict[str | None, list[NodeFiles]] = {}
    for node in nodes:
        if node.log is not None:
            by_cluster.setdefault(node.cluster_id, []).append(node)
    if not by_cluster:
        return VoterSet(next((n.cluster_id for n in nodes if n.cluster_id), None), None, (), 0)
    cluster_id = max(
        by_cluster, key=lambda each: (each is not None, len(by_cluster[each]), position(best(by_cluster[each])))
    )
    reference = best(by_cluster[cluster_id])
    assert reference.log is not None
    if reference.log.voters:
        return VoterSet(cluster_id, reference, reference.log.voters, 1)
    return VoterSet(cluster_id, reference, _static_voters(by_cluster[cluster_id], reference), 0)


def _static_voters(nodes: Sequence[NodeFiles], reference: NodeFiles) -> tuple[LogVoter, ...]:
    """Return static voters. Their ids are in quorum-state (before kraft.version 1) and in the last election."""
    ids = {node for each in nodes if each.state is not None for node in each.state.voters}
    if not ids and reference.log is not None and reference.log.last_election is not None:
        ids = {voter.id for voter in reference.log.last_election.voters}
    return tuple(LogVoter(node, None) for node in sorted(ids))


def best(nodes: Sequence[NodeFiles]) -> NodeFiles:
    """Return the node with the most complete log."""
    return max(nodes, key=position)


def position(node: NodeFiles) -> tuple[int, int]:
    """Return (last epoch, end offset) of a node's log."""
    return (0, 0) if node.log is None else node.log.position


def members_of(
    nodes: Sequence[NodeFiles], voters: VoterSet, unreachable: Mapping[Endpoint, str | None]
) -> tuple[list[QuorumMember], list[QuorumMember]]:
    """Return the voters, and the other nodes whose log dirs were read. unreachable: see endpoint_problems."""
    files = {voter.id: _files_of(voter, nodes, voters) for voter in voters.voters}
    statuses = {voter.id: _status(voter, files[voter.id], voters) for voter in voters.voters}
    intact = [node for voter, node in files.items() if node is not None and statuses[voter] is NodeStatus.INTACT]
    unread = sum(status is NodeStatus.NOT_READ for status in statuses.values())
    members = []
    for voter in voters.voters:
        node = files[voter.id]
        can_lead = _can_lead(node, intact, unread, voters.majority) if node in intact else False
        if statuses[voter.id] is NodeStatus.NOT_READ:
            can_lead = None
        endpoint = voter.endpoints[0] if voter.endpoints else None
        members.append(_member(voter.id, statuses[voter.id], voter.directory_id, node, endpoint, unreachable, can_lead))
    others = [node for node in nodes if not any(node is each for each in files.values())]
    return members, [
        _member(node.node_id, _other_status(node, voters), node.directory_id, node, None, {}, False) for node in others
    ]


def _files_of(voter: LogVoter, nodes: Sequence[NodeFiles], voters: VoterSet) -> NodeFiles | None:
    """Return the log dir of a voter: the one with its directory id, or otherwise another one of the node."""
    candidates = [node for node in nodes if node.node_id == voter.id]
    exact = [node for node in candidates if _status(voter, node, voters) is NodeStatus.INTACT]
    return next(iter(exact or candidates), None)


def _status(voter: LogVoter, node: NodeFiles | None, voters: VoterSet) -> NodeStatus:
    if node is None:
        return NodeStatus.NOT_READ
    if node.cluster_id is not None and node.cluster_id != voters.cluster_id:
        return NodeStatus.OTHER_CLUSTER
    if node.log is None or node.cluster_id is None:
        return NodeStatus.MISSING
    if voter.directory_id is not None and node.directory_id != voter.directory_id:
        return NodeStatus.OTHER_DIRECTORY
    if node.log.damage or node.problems:
        return NodeStatus.DAMAGED
    was_written = node.has_partitions or _was_written(voters)
    return NodeStatus.EMPTY if node.log.is_empty and was_written else NodeStatus.INTACT


def _was_written(voters: VoterSet) -> bool:
    """Return True if the cluster had a leader: then an empty log has lost its records."""
    return voters.reference is not None and voters.reference.log is not None and not voters.reference.log.is_empty


def _other_status(node: NodeFiles, voters: VoterSet) -> NodeStatus:
    if node.cluster_id is not None and node.cluster_id != voters.cluster_id:
        return NodeStatus.OTHER_CLUSTER
    if node.log is None:
        return NodeStatus.MISSING
    return NodeStatus.DAMAGED if node.log.damage else NodeStatus.OBSERVER


def _can_lead(candidate: NodeFiles | None, intact: Sequence[NodeFiles], unread: int, majority: int) -> bool | None:
    assert candidate is not None
    votes = sum(position(node) <= position(candidate) for node in intact)
    if votes >= majority:
        return True
    return None if votes + unread >= majority else False


def _member(
    node_id: int | None,
    status: NodeStatus,
    directory_id: str | None,
    node: NodeFiles | None,
    endpoint: Endpoint | None,
    unreachable: Mapping[Endpoint, str | None],
    can_lead: bool | None,
) -> QuorumMember:
    log = None if node is None else node.log
    state = None if node is None else node.state
    return QuorumMember(
        node_id=node_id,
        status=status,
        directory_id=directory_id,
        endpoint=None if endpoint is None else str(endpoint),
        endpoint_problem=None if endpoint is None else unreachable.get(endpoint, "not tried"),
        log_dir=None if node is None else str(node.log_dir),
        process=None if node is None else node.process,
        last_epoch=None if log is None else log.last_epoch,
        log_end_offset=None if log is None else log.end_offset,
        state_epoch=None if state is None else state.leader_epoch,
        leader_id=None if state is None else state.leader_id,
        voted_id=None if state is None else state.voted_id,
        can_lead=can_lead,
    )
