"""kctl spark lag: consumer lag, computed by PySpark."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.invocation import invocation
from kctl.commands.spark_run import (
    REQUEST_TIMEOUT_S,
    Conf,
    Master,
    Memory,
    Overwrite,
    Parquet,
    TopicNames,
    running,
    settings_of,
    topic_names,
)
from kctl.commands.views import By, incomplete, judge, lag_table, remarks


def lag(
    ctx: typer.Context,
    group: Annotated[list[str] | None, typer.Option(help="Only this group; repeatable.")] = None,
    topic: TopicNames = None,
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state; repeatable.")] = None,
    by: Annotated[By, typer.Option(help="What a row adds up.")] = By.PARTITION,
    max_lag: Annotated[int | None, typer.Option(min=0, help="Exit 1 when the lag of any row is more.")] = None,
    parquet: Parquet = None,
    overwrite: Overwrite = False,
    master: Master = "local",
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Compute consumer lag with Spark: the rows and figures of `kctl lag`.

    For a cluster that fits one machine `kctl lag` answers at once; this is for a Spark cluster, and for Parquet.

    Example: kctl spark lag --by group --parquet ./lag
    """
    from kctl.groups.overview import failures_of, known_states

    inv = invocation(ctx)
    states, topics = known_states(state), topic_names(topic)
    settings = settings_of(master, conf, driver_memory)
    with running(inv, settings, parquet, overwrite=overwrite) as run:
        from kctl.spark.planning import plan_lag

        with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
            plan = plan_lag(client, group or None, topics=topics, states=states, parallelism=settings.parallelism)
            target = client.target
        spark = run.driver.session()
        from kctl.spark.lag_job import lag_job

        with run.watched("reading offsets"):
            job = lag_job(spark, target, plan, timeout_s=REQUEST_TIMEOUT_S)
            report = job.report()
            rows = job.rows(by.value)
            run.write(job.frame(by.value))
        run.emit(inv, rows, lambda: [lag_table(rows, by, members=True)])
    remarks(report)
    judge(rows, by, max_lag)
    failures = failures_of(report)
    if failures:
        raise incomplete(failures)
