"""`kctl quorum status`: the voters and observers of the metadata quorum."""

from __future__ import annotations

from typing import Any

import typer

from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.terminal.quorum_members import member_row
from kctl.errors import NotHealthy


def status(ctx: typer.Context) -> None:
    """Show the voters and observers of the metadata quorum.

    Exits 1 if there is no leader, or if a voter does not follow it.

    # Show the directory ids of the voters as JSON
    kctl quorum status -o json
    """
    from kctl.cluster.controller import of_quorum
    from kctl.health.brokers import silent_voters
    from kctl.quorum.facts import NoLeader, read_facts

    inv = invocation(ctx)
    with inv.connect(controllers=True) as client:
        try:
            facts = read_facts(client)
        except NoLeader as exc:
            raise NotHealthy(exc.message, hint=exc.hint, details=exc.details) from None
    controller = of_quorum(facts.quorum)
    result = {
        "leader_id": facts.quorum.leader_id,
        "leader_epoch": facts.quorum.leader_epoch,
        "high_watermark": facts.quorum.high_watermark,
        "kraft_version": facts.kraft_version,
        "voters": controller.voters,
        "observers": controller.observers,
    }
    rows = [member_row(each) for each in (*controller.voters, *controller.observers)]
    inv.emit(result, lambda: [_quorum_table(result), _members_table(rows)])
    silent = silent_voters(facts.quorum)
    if silent:
        names = ", ".join(str(voter.id) for voter in silent)
        verb = "does" if len(silent) == 1 else "do"
        raise NotHealthy(
            f"{len(silent)} of {len(facts.quorum.voters)} voters {verb} not follow the leader: controller {names}",
            hint="start the controller, or remove it permanently with `kctl quorum remove ID`",
        )


def _quorum_table(result: dict[str, Any]) -> Table:
    kinds = {0: "0 (static voters)", 1: "1 (dynamic voters)"}
    facts = {
        "epoch": result["leader_epoch"],
        "high watermark": result["high_watermark"],
        "kraft.version": kinds.get(result["kraft_version"], result["kraft_version"]),
    }
    columns = [Column("key", "LEADER"), Column("value", str(result["leader_id"]))]
    return Table(columns, [{"key": key, "value": value} for key, value in facts.items()])


def _members_table(rows: list[dict[str, Any]]) -> Table:
    columns = [
        Column("node_id", "ID", align="right"),
        Column("role"),
        Column("directory_id", "DIRECTORY ID"),
        Column("address", "ENDPOINT"),
        Column("log_end_offset", "LOG END", align="right"),
        Column("lag", align="right"),
        Column("caught_up", "CAUGHT UP"),
        Column("fetched", "LAST FETCH", wide=True),
    ]
    return Table(columns, rows)
