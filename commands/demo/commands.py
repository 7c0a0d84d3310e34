"""`kctl demo`: a one-minute tour of kctl, which shows each command as a user would type it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.own_python import child_environment
from kctl.commands.demo import steps as demo
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import invocation
from kctl.errors import AlreadyExists, ExitCode, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_STOP_S = 10.0


def command(
    ctx: typer.Context,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the cluster running at the end.")] = False,
    name: Annotated[str, typer.Option(help="Name of the demo cluster.")] = "demo",
    layout: Annotated[
        str, typer.Option(metavar="LAYOUT", help=f"Layout of the cluster: {', '.join(demo.LAYOUTS)}.")
    ] = "pseudo-distributed",
    spark: Annotated[bool, typer.Option(help="Show the Spark reports (requires pyspark).")] = True,
) -> None:
    """Run a tour: a cluster starts, works, loses a broker and recovers.

    Creates a cluster with three brokers. Removes it at the end, also on Ctrl-C, unless --keep is set.

    # Run the tour, and keep the cluster for experiments
    kctl demo --keep

    # Run the tour on Kafka 4 without ZooKeeper
    kctl demo --layout kraft-combined
    """
    from kctl.deploy import store

    inv = invocation(ctx)
    if layout not in demo.LAYOUTS:
        raise UsageError(f"--layout {layout} is invalid", hint=f"choose one of {', '.join(demo.LAYOUTS)}")
    if store.exists(name):
        raise AlreadyExists(
            f"cluster {name!r} already exists",
            hint=f"remove it with `kctl cluster destroy {name}`, or set another name with --name",
        )
    started = time.monotonic()
    with interrupt_when_terminated(), contextlib.ExitStack() as clean_up:
        os.environ["KCTL_CONTEXT"] = name  # the caller's KCTL_CONTEXT may name another cluster
        if not keep:
            clean_up.callback(_remove, name, inv.verbose)
        with contextlib.ExitStack() as background:
            _play(name, layout, background, spark=spark)
        _comment(f"The demo is finished ({time.monotonic() - started:.0f} s).")
    if keep:
        _comment(f"The cluster keeps running. Remove it with: kctl cluster destroy {name}")
        _comment(f"{name} is not the current context. Add --context {name}, or switch with: kctl context use {name}")


def _play(name: str, layout: str, background: contextlib.ExitStack, *, spark: bool) -> None:
    for step in demo.topics(name, layout):
        _show(step)
    lines = demo.records()
    _comment("Start real producers and consumers")
    first = "".join(f"{line}\n" for line in islice(lines, demo.FIRST_RECORDS))
    _run(("produce", "orders", "--key-separator", ":"), stdin=first)
    _start_clients(background, lines)
    for step in (*demo.lag(), *demo.fault(name)):
        _show(step)
    if spark:
        for step in demo.spark():
            _show(step)


def _start_clients(background: contextlib.ExitStack, lines: Iterator[str]) -> None:
    """Run two producers and two consumers until the stack closes; billing is too slow to keep up."""
    stopping = threading.Event()
    dashboard = _spawn("consume", "orders", "--group", "dashboard", "--from-beginning")
    billing = _spawn("consume", "orders", "--group", "billing", "--from-beginning")
    _thread(_drain, dashboard, None)
    _thread(_drain, billing, demo.SLOW_RATE_PER_S)
    producers = [_spawn("produce", topic, "--key-separator", ":") for topic in demo.TOPICS]
    shared = threading.Lock()
    for producer in producers:
        _thread(_feed, producer, lines, shared, stopping)
    background.callback(_stop, [*producers, dashboard, billing])
    background.callback(stopping.set)


def _thread(target: object, *args: object) -> None:
    threading.Thread(target=target, args=args, daemon=True).start()  # type: ignore[arg-type]  # any callable


def _feed(
    process: subprocess.Popen[str], lines: Iterator[str], shared: threading.Lock, stopping: threading.Event
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ValueError):  # the producer was stopped
        while not stopping.wait(0.1):
            with shared:
                batch = list(islice(lines, demo.RATE_PER_S // 10))
            process.stdin.writelines(f"{line}\n" for line in batch)
            process.stdin.flush()


def _drain(process: subprocess.Popen[str], rate_per_s: int | None) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError):  # closed while reading
        for _ in process.stdout:
            if rate_per_s:
                time.sleep(1 / rate_per_s)


def _show(step: demo.DemoStep) -> None:
    _comment(step.title)
    if step.wait_for:
        _wait_for(step.wait_for)
    _run(step.argv, may_be_unhealthy=step.may_be_unhealthy)


def _wait_for(state: str, timeout_s: float = 60) -> None:
    """Wait until the cluster has the state that the next step shows. Raises OperationFailed after `timeout_s`."""
    from kctl.contexts.choose import resolve_target
    from kctl.protocol.client import connect

    conditions = {"commits": _committed, "isr_shrunk": _under_replicated, "isr_full": _in_sync}
    deadline = time.monotonic() + timeout_s
    target = resolve_target(context=None, bootstrap_server=None, zookeeper=None, command_config=None)
    with connect(target) as client:
        while not conditions[state](client):
            if time.monotonic() > deadline:
                raise OperationFailed(f"the cluster did not reach {state.replace('_', ' ')!r} within {timeout_s:g} s")
            time.sleep(0.3)


def _under_replicated(client: ClusterClient) -> bool:
    topics = client.metadata(demo.TOPICS).topics.values()
    return any(p.under_replicated for topic in topics for p in topic.partitions)


def _in_sync(client: ClusterClient) -> bool:
    return not _under_replicated(client)


def _committed(client: ClusterClient) -> bool:
    from kctl.lag.collect import collect_lag

    rows = collect_lag(client, demo.LIVE_GROUPS)
    return {row.group for row in rows if row.lag is not None} == set(demo.LIVE_GROUPS)


def _run(argv: Iterable[str], *, stdin: str | None = None, may_be_unhealthy: bool = False) -> None:
    argv = list(argv)
    _prompt(argv)
    source = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    process = subprocess.run([*_kctl(), *argv], text=True, check=False, env=child_environment(os.environ), **source)
    if process.returncode == ExitCode.UNHEALTHY and may_be_unhealthy:
        output.write_line("# exit code 1")
    elif process.returncode:
        raise OperationFailed(f"kctl {shlex.join(argv)} ended with exit code {process.returncode}")


def _kctl() -> list[str]:
    """Return the command of this kctl; PATH may have another kctl, or none."""
    return [sys.executable, "-m", "kctl"]


def _spawn(*argv: str) -> subprocess.Popen[str]:
    """Start kctl in the background, in its own session so that Ctrl-C reaches only the demo."""
    return subprocess.Popen(
        [*_kctl(), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True, env=child_environment(os.environ),
    )  # fmt: skip


def _stop(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _remove(name: str, verbose: bool) -> None:
    """Destroy the cluster in any state; a second Ctrl-C does not interrupt this."""
    from kctl.deploy import store

    if not store.exists(name):
        return
    _comment("Removing the cluster")
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        argv = [*_kctl(), "cluster", "destroy", name, "--yes", "--confirm-cluster", name]
        # Destroying the cluster removes its context; with KCTL_CONTEXT set, destroy would warn about that.
        env = {key: value for key, value in os.environ.items() if key != "KCTL_CONTEXT"}
        process = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=None if verbose else subprocess.DEVNULL, env=env,
            check=False, start_new_session=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, previous)
    if process.returncode:
        raise OperationFailed(f"cluster {name!r} was not removed", hint=f"remove it: `kctl cluster destroy {name}`")


def _comment(text: str) -> None:
    """Print narration as a shell comment, so that it cannot be mistaken for output."""
    output.write_line("")
    output.heading(f"# {text}")
    sys.stdout.flush()


def _prompt(argv: list[str]) -> None:
    output.write_line(f"$ kctl {shlex.join(argv)}")
    sys.stdout.flush()
