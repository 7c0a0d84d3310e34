"""kctl spark bundle: the archive that the executors of a Spark cluster need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.history.options import show_size
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable


def bundle(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The archive, *.tgz.")] = Path("kctl.tgz"),
    master: Annotated[str, typer.Option(metavar="URL", help="For the command lines.")] = "spark://HOST:7077",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Pack kctl and what it imports for the executors of a Spark cluster, and tell how to use it.

    Executors need Python of the same version on the same platform, and nothing of kctl.

    Example: kctl spark bundle --out kctl.tgz --master spark://master:7077
    """
    from kctl.spark.bundle import make_bundle

    inv = invocation(ctx)
    with undone_when_terminated(), output.progress("packing") as progress:
        made = make_bundle(out, master=master, overwrite=overwrite, progress=progress)
    columns = [
        Column("path"),
        Column("size_bytes", "SIZE", show=show_size, align="right"),
        Column("files", align="right"),
        Column("python_version", "PYTHON"),
        Column("platform"),
    ]
    inv.emit(made, lambda: [Table(columns, [jsonable(made)])], changed=True)
    if made.absent:
        output.warn(f"not installed here, and so not in it: {', '.join(made.absent)}")
    output.note(f"with kctl:  kctl spark lag {made.kctl_options}")
    output.note(f"with Spark: {made.spark_submit} spark lag")
