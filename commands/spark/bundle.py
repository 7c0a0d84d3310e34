"""kctl spark bundle: the archive for the executors of a Spark cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.history.options import show_size
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable


def bundle(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Archive to write (*.tgz).")] = Path("kctl.tgz"),
    master: Annotated[
        str, typer.Option(metavar="URL", help="Master URL in the printed commands.")
    ] = "spark://HOST:7077",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Pack kctl for the executors of a Spark cluster.

    The archive has kctl and its dependencies. Prints the commands that use it. Executors need the same Python
    version and platform, but not kctl itself.

    # Pack kctl for a standalone Spark cluster
    kctl spark bundle --out kctl.tgz --master spark://master:7077
    """
    from kctl.spark.bundle import make_bundle

    inv = invocation(ctx)
    with interrupt_when_terminated(), output.progress("packing") as progress:
        archive = make_bundle(out, master=master, overwrite=overwrite, progress=progress)
    columns = [
        Column("path"),
        Column("size_bytes", "SIZE", show=show_size, align="right"),
        Column("files", align="right"),
        Column("python_version", "PYTHON"),
        Column("platform"),
    ]
    inv.emit(archive, lambda: [Table(columns, [jsonable(archive)])], changed=True)
    if archive.absent:
        output.warn(f"not installed here, so not in the archive: {', '.join(archive.absent)}")
    output.note(f"with kctl:  kctl spark lag {archive.kctl_options}")
    output.note(f"with Spark: {archive.spark_submit} spark lag")
