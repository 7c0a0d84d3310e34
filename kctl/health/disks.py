"""Log dirs that are offline, and disks that are nearly full."""

from __future__ import annotations

from kctl.base.text import counted
from kctl.cluster.log_dirs import LogDir
from kctl.errors import KctlError
from kctl.health.model import Check, Facts, Limits, Status


def used_percent(log_dir: LogDir) -> float | None:
    """How much of the log dir's disk is used, by whatever; None when the broker did not tell (before 3.3)."""
    if not log_dir.total_bytes or log_dir.usable_bytes is None:
        return None
    return round(100 * (1 - log_dir.usable_bytes / log_dir.total_bytes), 1)


def _unreadable(facts: Facts) -> tuple[str, ...]:
    """Of brokers that do answer: those that do not are told of as brokers."""
    silent = {node for node, view in facts.views.items() if isinstance(view, KctlError)}
    return tuple(
        found.message for node, found in facts.log_dirs.items() if isinstance(found, KctlError) and node not in silent
    )


def check_log_dirs(facts: Facts) -> Check:
    """Log dirs that their broker has given up on after an I/O error."""
    rows = [(node, found) for node, dirs in facts.log_dirs.items() if not isinstance(dirs, KctlError) for found in dirs]
    offline = [(node, found.path) for node, found in rows if found.error]
    reasons = _unreadable(facts)
    if offline:
        summary = f"{counted(len(offline), 'log dir')} offline"
        subjects = tuple(f"broker {node} {path}" for node, path in offline)
        return Check("log_dirs", Status.PROBLEM, summary, subjects, reasons)
    if reasons:
        summary = f"those of {counted(len(reasons), 'broker')} could not be read"
        return Check("log_dirs", Status.UNKNOWN, summary, reasons=reasons)
    return Check("log_dirs", Status.OK, f"{counted(len(rows), 'log dir')} online")


def check_disks(facts: Facts, limits: Limits) -> Check:
    """Disks that are fuller than the limit."""
    used = [
        (percent, f"broker {node} {found.path}")
        for node, dirs in facts.log_dirs.items()
        if not isinstance(dirs, KctlError)
        for found in dirs
        if (percent := used_percent(found)) is not None
    ]
    reasons = _unreadable(facts)
    over = sorted(((percent, name) for percent, name in used if percent > limits.disk_percent), reverse=True)
    if over:
        percent, _ = over[0]
        summary = f"{counted(len(over), 'log dir')} above {limits.disk_percent:g} %, the fullest at {percent:g} %"
        return Check("disks", Status.PROBLEM, summary, tuple(name for _, name in over), reasons)
    if reasons or not used:
        summary = "how full the disks are could not be read" if reasons else "brokers before 3.3 do not tell"
        return Check("disks", Status.UNKNOWN if reasons else Status.OK, summary, reasons=reasons)
    percent, name = max(used)
    silent = _not_telling(facts)
    more = f"; {'broker' if len(silent) == 1 else 'brokers'} {', '.join(map(str, silent))} before 3.3: not told"
    return Check("disks", Status.OK, f"at most {percent:g} % used{more if silent else ''}", (name,))


def _not_telling(facts: Facts) -> list[int]:
    """Brokers that do not tell of a log dir that is online how large its disk is, as while a cluster is upgraded."""
    return [
        node
        for node, dirs in sorted(facts.log_dirs.items())
        if not isinstance(dirs, KctlError) and any(used_percent(each) is None for each in dirs if not each.error)
    ]
