"""`kctl quorum status`: the voters and observers of the metadata quorum."""

from __future__ import annotations

import typer

from kctl.commands.controller import members_table
from kctl.commands.terminal.invocation import invocation
from kctl.errors import NotHealthy


def status(ctx: typer.Context) -> None:
    """Show the voters and observers of the metadata quorum.

    Exits 1 if there is no leader, or if a voter does not follow it.

    # Show the directory ids of the voters as JSON
    kctl quorum status -o json
    """
    from kctl.cluster.controller import of_quorum
    from kctl.health.brokers import silent_voters
    from kctl.quorum.facts import read_facts

    inv = invocation(ctx)
    with inv.connect() as client:
        facts = read_facts(client)
    controller = of_quorum(facts.quorum)
    result = {
        "leader_id": facts.quorum.leader_id,
        "leader_epoch": facts.quorum.leader_epoch,
        "high_watermark": facts.quorum.high_watermark,
        "kraft_version": facts.kraft_version,
        "voters": controller.voters,
        "observers": controller.observers,
    }
    inv.emit(result, lambda: [members_table((*controller.voters, *controller.observers))])
    silent = silent_voters(facts.quorum)
    if silent:
        names = ", ".join(f"controller {voter.id}" for voter in silent)
        raise NotHealthy(f"{names} of {len(facts.quorum.voters)} voters does not follow the leader")
