"""`kctl runtime`: provision Kafka's jars, check them, remove them."""

from __future__ import annotations

import os
from typing import Any

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.errors import NotFound, NotHealthy

app = CommandGroup(help="Provision Kafka itself: the jars that clusters on this machine run from.")

VERSION = typer.Option(None, "--kafka-version", metavar="VERSION", help="Which Kafka; 3.9.2 when not given.")


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List the versions that are provisioned.

    Example: kctl runtime list
    """
    from kctl.base.units import format_size
    from kctl.deploy.runtime.runtime import list_runtimes

    columns = [
        Column("version"),
        Column("state"),
        Column("jars", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
        Column("source"),
        Column("path"),
    ]
    found = list_runtimes()
    given = os.environ.get("KAFKA_HOME")
    if given:
        output.note(f"KAFKA_HOME is set: clusters run from {given} unless --kafka-version names another")

    def table() -> list[Table]:
        rows = [{**output.jsonable(r), "state": "ok" if r.healthy else "damaged"} for r in found]
        return [Table(columns, rows, empty="No Kafka is provisioned yet: kctl runtime install")]

    invocation(ctx).emit(found, table)


@app.command()
def install(
    ctx: typer.Context,
    kafka_version: str | None = VERSION,
    archive: str | None = typer.Option(None, metavar="FILE", help="A release that is here already: kafka_2.13-X.tgz."),
    sha512: str | None = typer.Option(
        None, metavar="HEX|FILE", help="The archive's SHA-512; FILE.sha512 beside it when not given."
    ),
    force: bool = typer.Option(False, "--force", help="Install it again, although it is there and whole."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be done, and do nothing."),
) -> None:
    """Install Kafka's jars.

    Sources in this order: the archive that is given, Apache's download (or the mirror that KCTL_KAFKA_MIRROR
    names), Maven coordinates by mvn, or by the Ivy that pyspark ships. Checksums are always checked. A cut
    download goes on where it was, and nothing is ever half-installed.

    Example: kctl runtime install --kafka-version 3.9.2
    """
    from kctl.deploy.runtime import runtime

    inv = invocation(ctx)
    wanted = runtime.wanted_version(kafka_version, archive)
    there = next((r for r in runtime.list_runtimes() if r.version == wanted), None)
    missing = there is None or not there.healthy or force
    if missing:
        if dry_run:
            _show_plan(ctx, wanted, archive)
            return
        with output.progress(f"Kafka {wanted}") as shown:
            runtime.install_runtime(
                wanted, archive=archive, sha512=sha512, force=force, progress=shown, note=output.note,
                timeout_s=inv.timeout_s(1800),
            )  # fmt: skip
        there = next(r for r in runtime.list_runtimes() if r.version == wanted)
    assert there is not None
    _show_one(ctx, there, changed=missing)


def _show_plan(ctx: typer.Context, version: str, archive: str | None) -> None:
    from kctl.deploy.runtime.provision import source_names
    from kctl.deploy.runtime.runtime import home_of

    plan = {"version": version, "path": home_of(version), "sources": source_names(version, archive)}
    row: dict[str, Any] = output.jsonable(plan)
    columns = [Column("version"), Column("path"), Column("sources")]
    invocation(ctx).emit(plan, lambda: [Table(columns, [row])], changed=True)


def _show_one(ctx: typer.Context, found: Any, *, changed: bool) -> None:
    columns = [Column("version"), Column("jars", align="right"), Column("source"), Column("path")]
    invocation(ctx).emit(found, lambda: [Table(columns, [output.jsonable(found)])], changed=changed)


@app.command()
def verify(
    ctx: typer.Context,
    kafka_version: str | None = typer.Option(
        None, "--kafka-version", metavar="VERSION", help="Only this one; all that are provisioned when not given."
    ),
) -> None:
    """Hash every jar: what is missing, changed, or does not belong there gives exit code 1.

    Example: kctl runtime verify
    """
    from kctl.deploy.runtime.runtime import list_runtimes, verify_runtime

    versions = [kafka_version] if kafka_version else [r.version for r in list_runtimes()]
    if not versions:
        raise NotFound(
            "no Kafka runtime is installed, so there is nothing to verify",
            hint="install one with `kctl runtime install`",
        )
    with output.progress("hashing the jars"):
        results = [verify_runtime(version) for version in versions]

    def tables() -> list[Table]:
        summary = [{**output.jsonable(r), "state": "ok" if r.healthy else "damaged"} for r in results]
        problems = [{"version": r.version, **output.jsonable(p)} for r in results for p in r.problems]
        return [
            Table([Column("version"), Column("state"), Column("jars", align="right"), Column("path")], summary),
            Table([Column("version"), Column("problem"), Column("jar")], problems),
        ]

    invocation(ctx).emit(results, tables)
    damaged = [r.version for r in results if not r.healthy]
    if damaged:
        raise NotHealthy(
            f"Kafka {', '.join(damaged)} is not as it was installed",
            hint=f"repair it with kctl runtime install --kafka-version {damaged[0]} --force",
        )


@app.command()
def remove(
    ctx: typer.Context,
    kafka_version: str = typer.Option(..., "--kafka-version", metavar="VERSION", help="Which one."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be removed, and remove nothing."),
) -> None:
    """Remove a provisioned version. One that a process runs from is refused.

    Example: kctl runtime remove --kafka-version 3.9.2
    """
    from kctl.deploy.runtime import runtime

    home = runtime.installed_home(kafka_version)
    if not dry_run:
        runtime.refuse_when_used(kafka_version)
        invocation(ctx).confirm(f"Remove Kafka {kafka_version} ({home})?")
        runtime.remove_runtime(kafka_version)
    result = {"version": kafka_version, "path": home, "removed": not dry_run}
    columns = [Column("version"), Column("path"), Column("removed")]
    invocation(ctx).emit(result, lambda: [Table(columns, [output.jsonable(result)])], changed=True)
