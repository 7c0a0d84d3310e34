"""Diagnose a quorum from its nodes: the verdict, the findings, and the next steps. Pure, except for `examine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from kctl.base.text import counted
from kctl.quorum.recover import (
    ElectionVerdict,
    NodeStatus,
    QuorumMember,
    RecoveryReport,
    VoterSet,
    members_of,
    position,
    voter_set,
)
from kctl.quorum.recover_endpoints import endpoint_problems
from kctl.quorum.recover_files import NodeFiles
from kctl.quorum.recover_findings import best_copy, find_problems
from kctl.quorum.recover_log import METADATA_FOLDER, Endpoint
from kctl.segment.format.checkpoints import META_PROPERTIES
from kctl.segment.format.quorum_state import QUORUM_STATE


def examine(nodes: Sequence[NodeFiles], *, cluster: str | None = None) -> RecoveryReport:
    """Diagnose the nodes, after connecting to the endpoints of the voters (at most 2 s).

    cluster: the name of a cluster that kctl set up, for the commands in the next steps.
    """
    endpoints = [endpoint for voter in voter_set(nodes).voters for endpoint in voter.endpoints[:1]]
    return diagnose_quorum(nodes, endpoint_problems(endpoints), cluster=cluster)


def diagnose_quorum(
    nodes: Sequence[NodeFiles], unreachable: Mapping[Endpoint, str | None], *, cluster: str | None = None
) -> RecoveryReport:
    """Diagnose the nodes. unreachable: see endpoint_problems. Pure."""
    voters = voter_set(nodes)
    members, others = members_of(nodes, voters, unreachable)
    verdict = _verdict(members, voters)
    return RecoveryReport(
        cluster_id=voters.cluster_id,
        kraft_version=voters.kraft_version,
        verdict=verdict,
        summary=_summary(verdict, members, voters),
        majority=voters.majority,
        voters=tuple(members),
        others=tuple(others),
        findings=tuple(find_problems(nodes, voters, members, others)),
        next_steps=tuple(_steps(verdict, members, voters, nodes, cluster)),
    )


def _with(members: Sequence[QuorumMember], *statuses: NodeStatus) -> list[QuorumMember]:
    return [member for member in members if member.status in statuses]


def _lost(members: Sequence[QuorumMember]) -> list[QuorumMember]:
    return [member for member in members if member.status not in {NodeStatus.INTACT, NodeStatus.NOT_READ}]


def _verdict(members: Sequence[QuorumMember], voters: VoterSet) -> ElectionVerdict:
    intact = len(_with(members, NodeStatus.INTACT))
    if not members:
        return ElectionVerdict.UNDECIDED
    if intact >= voters.majority:
        return ElectionVerdict.ELECTABLE
    unread = len(_with(members, NodeStatus.NOT_READ))
    return ElectionVerdict.UNDECIDED if intact + unread >= voters.majority else ElectionVerdict.NO_MAJORITY


def _summary(verdict: ElectionVerdict, members: Sequence[QuorumMember], voters: VoterSet) -> str:
    if not members:
        return "the voters are unknown: no log dir has a readable metadata log"
    intact = _with(members, NodeStatus.INTACT)
    of_all = f"{len(intact)} of {counted(len(members), 'voter')} can vote, and an election needs {voters.majority}"
    if verdict is ElectionVerdict.NO_MAJORITY:
        return f"no leader can be elected: {of_all}"
    if verdict is ElectionVerdict.UNDECIDED:
        unread = _named(_with(members, NodeStatus.NOT_READ))
        return f"{of_all}; the log dirs of {unread} were not read"
    up = [member for member in intact if member.is_up]
    reached = [member for member in up if member.endpoint_problem is None]
    if len(up) < voters.majority:
        running = f"{len(up)} of the {len(intact)} that can vote {'is' if len(up) == 1 else 'are'} running"
        return f"a leader can be elected when {voters.majority} voters run; {running}"
    if len(reached) < voters.majority:
        return (
            f"{len(up)} voters run, but only {len(reached)} can be reached at the endpoint in the voters record;"
            f" an election needs {voters.majority}"
        )
    return f"a majority is running: {len(reached)} of {counted(len(members), 'voter')} can vote and can be reached"


def _named(members: Sequence[QuorumMember]) -> str:
    """Return "controller 1" or "controllers 1, 2 and 3"."""
    *first, last = (str(member.node_id) for member in members)
    return f"controllers {', '.join(first)} and {last}" if first else f"controller {last}"


def _steps(
    verdict: ElectionVerdict,
    members: Sequence[QuorumMember],
    voters: VoterSet,
    nodes: Sequence[NodeFiles],
    cluster: str | None,
) -> list[str]:
    if not members:
        return ["Pass the log dirs of all controllers (metadata.log.dir, or the first of log.dirs)."]
    unread = _with(members, NodeStatus.NOT_READ)
    steps = _endpoint_steps(members)
    if unread and verdict is not ElectionVerdict.ELECTABLE:
        steps.append(
            f"Run `kctl quorum recover` on the hosts of {_named(unread)}, or pass copies of the log dirs here."
        )
    if verdict is ElectionVerdict.NO_MAJORITY:
        return [*steps, *_last_resort(members, voters, nodes)]
    if verdict is ElectionVerdict.ELECTABLE:
        down = [member for member in _with(members, NodeStatus.INTACT) if not member.is_up]
        if down:
            command = f": kctl cluster start {cluster}" if cluster and not _lost(members) else ""
            steps.append(f"Start {_named(down)}{command}")
        steps += _replacement_steps(_lost(members), voters, nodes)
    return steps


def _endpoint_steps(members: Sequence[QuorumMember]) -> list[str]:
    moved = [
        member
        for member in members
        if member.endpoint_problem is not None and (member.process is not None or "resolve" in member.endpoint_problem)
    ]
    if not moved:
        return []
    places = ", ".join(str(member.endpoint) for member in moved)
    return [
        (
            f"If the controllers are not just starting, make {_named(moved)} reachable at {places} again: restore the"
            " DNS names, or the old listeners of the controllers. Without a leader, the voters record cannot change."
        ),
        (
            "When there is a leader, change the address of one controller at a time. A controller registers its new"
            " endpoint when it restarts."
        ),
    ]


def _replacement_steps(members: Sequence[QuorumMember], voters: VoterSet, nodes: Sequence[NodeFiles]) -> list[str]:
    """Return how to replace voters that lost their log, while the others are a majority."""
    steps = []
    with_partitions = {str(node.log_dir) for node in nodes if node.has_partitions}
    for member in members:
        node = member.node_id
        steps.append(
            f"Controller {node}: if its latest data still exists, e.g. on an unmounted disk, restore the log dir and"
            " start the controller. Do not restore an older copy: committed metadata can be lost."
            " Otherwise keep the controller stopped until the others have a leader, then replace it:"
        )
        if voters.kraft_version:
            steps.append(f"kctl quorum remove {node}")
        extra = " --no-initial-controllers" if voters.kraft_version else ""
        away = "Move its old log dir away, and format a new one"
        if member.status is NodeStatus.OTHER_CLUSTER:
            steps.append(_foreign_step(member))
            away = "Format the new folder"
        elif member.log_dir in with_partitions:
            steps.append(
                f"{member.log_dir} also holds replicas of topics, which broker {node} must fetch again: make sure that"
                " no partition has its only in-sync replica there. See `kctl topic describe`."
            )
        steps.append(f"{away}: kafka-storage.sh format --cluster-id {voters.cluster_id} --config FILE{extra}")
        steps.append(f"Start controller {node}, and wait until its lag is 0: kctl controller")
        if voters.kraft_version:
            steps.append(f"kctl quorum add {node}")
    return steps


def _foreign_step(member: QuorumMember) -> str:
    return (
        f"Controller {member.node_id}: leave {member.log_dir} as it is, because it belongs to another cluster. Set"
        " metadata.log.dir of the controller to a new folder."
    )


def _last_resort(members: Sequence[QuorumMember], voters: VoterSet, nodes: Sequence[NodeFiles]) -> list[str]:
    lost = _lost(members)
    search = (
        f"Look for the lost log dirs of {_named(lost)} first, e.g. on an unmounted disk or a detached volume."
        " A voter with its own complete log dir needs nothing else."
    )
    steps = [search]
    copy = best_copy(nodes, voters)
    if copy is None:
        return [
            *steps,
            "No undamaged copy of the metadata log was read. Pass the log dirs of brokers: they have copies.",
        ]
    assert copy.log is not None
    when = ""
    if copy.log.last_timestamp_ms is not None and copy.log.last_timestamp_ms >= 0:
        when = (
            f", written {datetime.fromtimestamp(copy.log.last_timestamp_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
        )
    need = voters.majority - len(_with(members, NodeStatus.INTACT))
    chosen = sorted(
        lost, key=lambda each: (each.log_dir != str(copy.log_dir), each.status is NodeStatus.OTHER_CLUSTER)
    )[:need]
    epoch, end = position(copy)
    steps.append(
        f"Last resort, may lose metadata changes: give {counted(need, 'lost voter')} the copy of"
        f" {copy.subject} ({copy.log_dir}), which ends at offset {end} (epoch {epoch}{when})."
        " Later changes are lost. Read docs/runbooks/lost-quorum.md first."
    )
    steps.append("Stop all controllers and brokers. Keep a copy of every log dir of the controllers.")
    for member in chosen:
        steps += _copy_steps(member, copy, voters)
    # It has no quorum-state, and the other voters still name it as the leader of an epoch that it does not know.
    steps.append(
        "Start the controllers. If one that got a copy ends with 'inconsistent with current leader', it was the last"
        " leader: start it again. When there is a leader, start the brokers."
    )
    return steps


def _copy_steps(member: QuorumMember, copy: NodeFiles, voters: VoterSet) -> list[str]:
    foreign = member.status is NodeStatus.OTHER_CLUSTER
    target = "METADATA_LOG_DIR" if foreign else member.log_dir or "LOG_DIR"
    lines = [f"version=1, cluster.id={voters.cluster_id}, node.id={member.node_id}"]
    if member.directory_id is not None:
        lines.append(f"directory.id={member.directory_id}")
    who, folder = f"Controller {member.node_id}", METADATA_FOLDER
    replace = f"replace {target}/{folder} with a copy of {copy.log_dir}/{folder}, without the file {QUORUM_STATE}"
    if member.log_dir == str(copy.log_dir):
        replace = f"keep its own {folder}, which is the most complete, but move the file {QUORUM_STATE} away"
    write = f"write {target}/{META_PROPERTIES}, one setting per line: {', '.join(lines)}"
    return [*([_foreign_step(member)] if foreign else []), f"{who}: {replace}.", f"{who}: {write}"]
