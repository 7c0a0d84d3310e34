"""`kctl runtime`: install, verify and remove Kafka's jars."""

from __future__ import annotations

import os
from typing import Any

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.errors import NotFound, NotHealthy

app = CommandGroup()

VERSION = typer.Option(None, "--kafka-version", metavar="VERSION", help="Kafka version (default: 3.9.2).")


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List the installed Kafka versions.

    # List all installed versions
    kctl runtime list
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
    runtimes = list_runtimes()
    kafka_home = os.environ.get("KAFKA_HOME")
    if kafka_home:
        output.note(f"KAFKA_HOME is set: clusters run from {kafka_home} unless --kafka-version names another version")

    def table() -> list[Table]:
        rows = [{**output.jsonable(r), "state": "ok" if r.healthy else "damaged"} for r in runtimes]
        return [Table(columns, rows, empty="no Kafka is installed; install it with `kctl runtime install`")]

    invocation(ctx).emit(runtimes, table)


@app.command()
def install(
    ctx: typer.Context,
    kafka_version: str | None = VERSION,
    archive: str | None = typer.Option(None, metavar="FILE", help="A downloaded release, e.g. kafka_2.13-3.9.2.tgz."),
    sha512: str | None = typer.Option(
        None,
        metavar="HEX|FILE",
        help="Expected SHA-512 of the archive, or a file with it (default: ARCHIVE.sha512 beside the archive).",
    ),
    force: bool = typer.Option(False, "--force", help="Reinstall a version that is already complete."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what would be done; change nothing."),
) -> None:
    """Install Kafka's jars.

    Tries these sources in order: --archive, Apache's download servers (or KCTL_KAFKA_MIRROR), and the Maven
    repository, first through mvn, then through the Ivy of PySpark. Checksums are always verified. An interrupted
    download resumes, and a failed installation leaves nothing behind.

    # Install one Kafka release
    kctl runtime install --kafka-version 3.9.2
    """
    from kctl.deploy.runtime import runtime

    inv = invocation(ctx)
    version = runtime.requested_version(kafka_version, archive)
    installed = next((r for r in runtime.list_runtimes() if r.version == version), None)
    missing = installed is None or not installed.healthy or force
    if missing:
        if dry_run:
            _show_plan(ctx, version, archive)
            return
        with output.progress(f"Kafka {version}") as progress:
            runtime.install_runtime(
                version, archive=archive, sha512=sha512, force=force, progress=progress, note=output.note,
                timeout_s=inv.timeout_s(1800),
            )  # fmt: skip
        installed = next(r for r in runtime.list_runtimes() if r.version == version)
    assert installed is not None
    _show_one(ctx, installed, changed=missing)


def _show_plan(ctx: typer.Context, version: str, archive: str | None) -> None:
    from kctl.deploy.runtime.provision import source_names
    from kctl.deploy.runtime.runtime import home_of

    plan = {"version": version, "path": home_of(version), "sources": source_names(version, archive)}
    row: dict[str, Any] = output.jsonable(plan)
    columns = [Column("version"), Column("path"), Column("sources")]
    invocation(ctx).emit(plan, lambda: [Table(columns, [row])], changed=True)


def _show_one(ctx: typer.Context, runtime: Any, *, changed: bool) -> None:
    columns = [Column("version"), Column("jars", align="right"), Column("source"), Column("path")]
    invocation(ctx).emit(runtime, lambda: [Table(columns, [output.jsonable(runtime)])], changed=changed)


@app.command()
def verify(
    ctx: typer.Context,
    kafka_version: str | None = typer.Option(
        None, "--kafka-version", metavar="VERSION", help="Verify only this version (default: all installed)."
    ),
) -> None:
    """Verify every jar; exit 1 if one is missing, changed or unknown.

    # Verify all installed versions
    kctl runtime verify
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
            f"Kafka {', '.join(damaged)} differs from what was installed",
            hint=f"repair it with `kctl runtime install --kafka-version {damaged[0]} --force`",
        )


@app.command()
def remove(
    ctx: typer.Context,
    kafka_version: str = typer.Option(..., "--kafka-version", metavar="VERSION", help="The version to remove."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what would be removed; remove nothing."),
) -> None:
    """Remove an installed Kafka version that no process uses.

    # Remove one version
    kctl runtime remove --kafka-version 3.9.2
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
