"""Prepare a playbook run: choose the cluster, ask for confirmation, build the journal's header."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.commands.terminal import confirm, output
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError, NotConfirmed, UsageError

if TYPE_CHECKING:
    from kctl.playbook.model import Playbook
    from kctl.playbook.operations import Where
    from kctl.playbook.parameters import Values
    from kctl.protocol.target import Target

_CONNECT_S = 10.0
_SHOWN = 20  # steps in the prompt


def forget_parameters() -> None:
    """Remove parameters from the environment, so that brokers and hooks started by steps do not inherit them."""
    from kctl.playbook.run.run_environment import without_parameters

    for name in [name for name in os.environ if name not in without_parameters(os.environ)]:
        del os.environ[name]


@dataclass(frozen=True)
class RunTarget:
    """The cluster of a run. target: None if no cluster is chosen. cluster_id: None if no broker responds."""

    where: Where
    target: Target | None
    cluster_id: str | None

    @property
    def name(self) -> str | None:
        return None if self.target is None else self.target.name

    @property
    def key(self) -> str:
        """Return the key of the run's own cluster among the confirmed clusters."""
        return self.name or ""


def require_terminal(*, ask: bool) -> None:
    """Raise NotConfirmed for --step without a terminal."""
    if ask and not confirm.interactive():
        raise NotConfirmed("--step asks before each step and requires a terminal", hint="run it without --step")


def uses_own_cluster(playbook: Playbook) -> bool:
    """Return True if a step may use the run's own cluster."""
    return any((each.is_operation and each.context is None) or each.kind == "include" for each in playbook.all_steps())


def resolve_run_target(inv: Invocation, ask_cluster: bool) -> RunTarget:
    """Return the cluster chosen by the options, if any. Raises UsageError for invalid options."""
    from kctl.playbook.operations import Where

    try:
        target = inv.target()
    except UsageError:
        if inv.context is not None or inv.bootstrap_server is not None:
            raise
        target = None
    context, servers = inv.context, inv.bootstrap_server
    if target is not None and servers is None:  # so that a later `context use` does not redirect the run
        context = target.context
        servers = ",".join(target.bootstrap_servers) if context is None and target.bootstrap_servers else None
    where = Where(
        context, servers, inv.zookeeper, _absolute(inv.command_config), inv.timeout, ignore_unknown=inv.ignore_unknown
    )
    if ask_cluster and target is not None:
        target = _connected(inv, target)
    return RunTarget(where, target, None if target is None else target.cluster_id)


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _connected(inv: Invocation, target: Target) -> Target:
    """Return the target with its cluster id, or without one if no broker responds: the playbook may start the cluster.

    Raises AuthenticationFailed, TlsMismatch and other errors that waiting does not fix.
    """
    from kctl.errors import ConnectionRefused, ConnectionTimedOut
    from kctl.protocol.client import connect

    if not target.bootstrap_servers:
        return target
    try:
        with connect(target, timeout_s=min(_CONNECT_S, inv.timeout_s(_CONNECT_S))) as client:
            return client.target
    except (ConnectionRefused, ConnectionTimedOut) as exc:
        output.warn(exc.message)
        return target


def ask_once(
    inv: Invocation, playbook: Playbook, values: Values, run_target: RunTarget, first: str | None, only: Sequence[str]
) -> dict[str, str]:
    """Show what the run changes and where, then ask.

    Return the name that confirms it for each protected target or context.
    """
    from kctl.playbook.overview import details_of
    from kctl.playbook.run.selection import Selection
    from kctl.playbook.shipped import PlaybookFile

    overview = details_of(PlaybookFile(playbook.source or Path(playbook.file), playbook.file, shipped=False), playbook)
    selected = Selection(first, tuple(only))
    skipped = {each.id for each in playbook.steps if selected.reason_against(playbook, each) is not None}
    steps = [each for each in overview.steps if each.step not in skipped]
    changing = [each for each in steps if each.changes]
    if not changing:
        return {}
    where = f"on {run_target.name}" if run_target.name is not None else "on this machine"
    cluster = f" (cluster {run_target.cluster_id})" if run_target.cluster_id else ""
    output.note(f"{playbook.name} {where}{cluster}: {len(changing)} of {len(steps)} steps can change something")
    for each in changing[:_SHOWN]:
        part = "" if each.part == "steps" else f" ({each.part.replace('_', ' ')})"
        output.note(f"  {each.step}: {each.operation}{part}{' for each item' if each.loop else ''}")
    if len(changing) > _SHOWN:
        output.note(f"  and {len(changing) - _SHOWN} more")
    confirmed: dict[str, str] = {}
    inv.confirm(f"Run {playbook.name} {where}?", target=run_target.target)
    if run_target.target is not None and (protectors := inv.protectors(run_target.target)):
        confirmed[run_target.key] = protectors[0].name
    for other, name in _other_protected(inv, playbook, values, run_target):
        if name not in confirmed.values():
            inv.confirm(f"{playbook.name} also acts on {other.name}. Run it?", target=other)
        confirmed[other.name] = name
    return confirmed


def _other_protected(
    inv: Invocation, playbook: Playbook, values: Values, run_target: RunTarget
) -> list[tuple[Target, str]]:
    """Return the protected clusters whose contexts are named in steps, each with the name that confirms it.

    Contexts that are known only during the run are missing: their steps are refused.
    """
    from kctl.contexts.choose import resolve_target
    from kctl.playbook.expressions.evaluation import render

    names = set()
    for step in playbook.all_steps():
        try:
            name = render(step.context, dict(values.values))
        except KctlError:
            continue
        if isinstance(name, str) and name != run_target.name:
            names.add(name)
    protected = []
    for name in sorted(names):
        try:
            target = _connected(inv, resolve_target(context=name))
        except KctlError:
            continue
        if protectors := inv.protectors(target):
            protected.append((target, protectors[0].name))
    return protected


def header_of(
    playbook: Playbook, values: Values, run_target: RunTarget, first: str | None, only: Sequence[str]
) -> dict[str, Any]:
    """Return the first entry of a run's journal."""
    from dataclasses import asdict

    from kctl import __version__

    public = values.public
    redacted = values.redactor.value(public)
    return {
        "name": playbook.name,
        "file": playbook.file,
        "source": None if playbook.source is None else str(playbook.source.absolute()),
        "text": playbook.text,
        "digest": playbook.digest,
        "steps": [each.id for each in playbook.steps],
        "parameters": {name: value for name, value in redacted.items() if value == public[name]},
        "secrets": sorted(values.secrets),
        "hidden": sorted(name for name, value in redacted.items() if value != public[name]),
        "target": run_target.name,
        "where": {key: value for key, value in asdict(run_target.where).items() if key != "confirm_cluster"},
        "cluster_id": run_target.cluster_id,
        "from": first,
        "limit": list(only),
        "folder": str(Path.cwd()),
        "version": __version__,
    }
