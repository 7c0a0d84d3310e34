"""kctl spark warm: the class archive that halves Spark's startup time."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.history.options import show_duration, show_size
from kctl.commands.spark.engine import JOB_TIMEOUT_S, Memory, settings_of, starting
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable


def warm(
    ctx: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Rebuild an existing archive.")] = False,
    driver_memory: Memory = "1g",
) -> None:
    """Create the class archive that halves Spark's startup time.

    Takes one to two minutes and 175 MB in kctl's cache folder, once per version of Spark and Java.

    # Create the archive for the default heap size
    kctl spark warm
    """
    from kctl.spark.warm import warm as make

    inv = invocation(ctx)
    settings = settings_of("local", None, driver_memory)
    with interrupt_when_terminated(), starting(inv) as progress:
        result = make(
            settings,
            force=force,
            timeout_s=inv.timeout_s(JOB_TIMEOUT_S),
            verbose=inv.verbose,
            progress=progress,
        )
    columns = [
        Column("path"),
        Column("made"),
        Column("size_bytes", "SIZE", show=show_size, align="right"),
        Column("spark_version", "SPARK"),
        Column("java_version", "JAVA", align="right"),
        Column("duration_ms", "TIME", show=show_duration, align="right"),
    ]
    inv.emit(result, lambda: [Table(columns, [jsonable(result)])], changed=result.made)
