"""`kctl quorum recover`: why the metadata quorum has no leader, from the files of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.quorum.recover import RecoveryReport

_STYLES = {"problem": "red", "note": None}


def recover(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LOG_DIR]…", help="Log dirs of controllers (default: those of the context's cluster)."),
    ] = None,
) -> None:
    """Explain offline why the metadata quorum has no leader.

    Reads meta.properties, quorum-state and the metadata log of controllers, running or not, and connects to the
    endpoints of the voters. Prints the next steps; changes nothing. Without LOG_DIR, reads the nodes of the context's
    cluster, if kctl set it up on this machine. Pass the log dirs of as many voters as possible, or copies of them.
    Exits 1 if something prevents an election, or keeps a voter from taking part.

    # Explain why the context's cluster has no leader
    kctl quorum recover

    # Read the log dir of a controller, and copies from two other hosts
    kctl quorum recover /var/kafka/metadata /tmp/copy-102 /tmp/copy-103
    """
    from kctl.quorum.recover_report import examine

    inv = invocation(ctx)
    cluster = None
    if paths:
        from kctl.quorum.recover_files import read_paths

        nodes = read_paths([Path(path) for path in paths])
    else:
        from kctl.deploy.host import LocalHost
        from kctl.deploy.store import load
        from kctl.quorum.recover_files import read_cluster

        cluster, host = _own_cluster(inv), LocalHost()
        spec = load(host, cluster)
        if not spec.uses_kraft:
            raise UsageError(f"cluster {cluster} uses ZooKeeper, which has no metadata quorum")
        nodes = read_cluster(host, spec)
    with output.progress("reading metadata logs"):
        report = examine(nodes, cluster=cluster)
    inv.emit(report, lambda: _tables(report), lambda: report.findings, changed=False)
    report.require_healthy()


def _own_cluster(inv: Invocation) -> str:
    from kctl.contexts.choose import current_context, get_context

    cluster = inv.context or current_context()
    if cluster is None or get_context(cluster).cluster_dir is None:
        raise UsageError(
            "kctl did not set up this cluster on this machine, so its log dirs are unknown",
            hint="pass the log dirs of controllers: metadata.log.dir, or the first of log.dirs",
        )
    return cluster


def _tables(report: RecoveryReport) -> list[Table]:
    members = [
        Column("node_id", "ID", align="right"),
        Column("role"),
        Column("status", style=lambda row: None if row["status"] in {"intact", "observer"} else "red"),
        Column("log_end_offset", "LOG END", align="right"),
        Column("last_epoch", "EPOCH", align="right"),
        Column("vote", "LAST VOTE"),
        Column("runs"),
        Column("listens", "ENDPOINT"),
        Column("directory_id", "DIRECTORY ID", wide=True),
        Column("log_dir", "LOG DIR", wide=True),
    ]
    rows = [
        {**jsonable(member), "role": role, "vote": _vote(jsonable(member)), "runs": _runs(jsonable(member)),
         "listens": _listens(jsonable(member))}
        for role, group in (("voter", report.voters), ("other", report.others))
        for member in group
    ]  # fmt: skip
    findings = [
        Column("severity", style=lambda row: _STYLES[row["severity"]]),
        Column("subject", "WHERE"),
        Column("message", "FINDING"),
    ]
    steps = [Column("step", align="right"), Column("action", "WHAT TO DO")]
    actions = [{"step": n, "action": text} for n, text in enumerate(report.next_steps, 1)]
    tables = [
        Table(members, rows, title=f"cluster {report.cluster_id or 'unknown'}: {report.summary}"),
        Table(findings, jsonable(report.findings), empty="no findings"),
        Table(steps, actions),
    ]
    return [table for table in tables if table.rows or table.empty]


def _vote(member: Mapping[str, Any]) -> str | None:
    if member["state_epoch"] is None:
        return None
    if member["leader_id"] is not None and member["leader_id"] == member["node_id"]:
        return f"leads epoch {member['state_epoch']}"
    voted = member["voted_id"]
    return f"epoch {member['state_epoch']}: {'none' if voted is None else voted}"


def _runs(member: Mapping[str, Any]) -> str:
    return str(member["process"] or "no")


def _listens(member: Mapping[str, Any]) -> str | None:
    if member["endpoint"] is None:
        return None
    problem = member["endpoint_problem"]
    return f"{member['endpoint']}{f' ({problem})' if problem else ''}"
