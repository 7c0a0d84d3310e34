"""Rules about offline log dirs and nearly full disks."""

from __future__ import annotations

from kctl.base.text import counted
from kctl.cluster.log_dirs import LogDir
from kctl.errors import KctlError
from kctl.health.model import Check, CheckStatus, Facts, HealthLimits


def used_percent(log_dir: LogDir) -> float | None:
    """Return the used percentage of the log dir's disk, including other files; None if not reported (before 3.3)."""
    if not log_dir.total_bytes or log_dir.usable_bytes is None:
        return None
    return round(100 * (1 - log_dir.usable_bytes / log_dir.total_bytes), 1)


def _unreadable(facts: Facts) -> tuple[str, ...]:
    """Return the errors of brokers that respond. The broker check reports the unresponsive ones."""
    unresponsive = {node for node, view in facts.views.items() if isinstance(view, KctlError)}
    return tuple(
        dirs.message
        for node, dirs in facts.log_dirs.items()
        if isinstance(dirs, KctlError) and node not in unresponsive
    )


def check_log_dirs(facts: Facts) -> Check:
    """Check for log dirs that the broker took offline after an I/O error."""
    rows = [
        (node, log_dir) for node, dirs in facts.log_dirs.items() if not isinstance(dirs, KctlError) for log_dir in dirs
    ]
    offline = [(node, log_dir.path) for node, log_dir in rows if log_dir.error]
    reasons = _unreadable(facts)
    if offline:
        summary = f"{counted(len(offline), 'log dir')} offline"
        subjects = tuple(f"broker {node} {path}" for node, path in offline)
        return Check("log_dirs", CheckStatus.PROBLEM, summary, subjects, reasons)
    if reasons:
        summary = f"the log dirs of {counted(len(reasons), 'broker')} are not readable"
        return Check("log_dirs", CheckStatus.UNKNOWN, summary, reasons=reasons)
    return Check("log_dirs", CheckStatus.OK, f"{counted(len(rows), 'log dir')} online")


def check_disks(facts: Facts, limits: HealthLimits) -> Check:
    """Check for disks that are fuller than the limit."""
    used = [
        (percent, f"broker {node} {log_dir.path}")
        for node, dirs in facts.log_dirs.items()
        if not isinstance(dirs, KctlError)
        for log_dir in dirs
        if (percent := used_percent(log_dir)) is not None
    ]
    reasons = _unreadable(facts)
    over = sorted(((percent, name) for percent, name in used if percent > limits.disk_percent), reverse=True)
    if over:
        percent, _ = over[0]
        summary = f"{counted(len(over), 'log dir')} above {limits.disk_percent:g} %, the fullest at {percent:g} %"
        return Check("disks", CheckStatus.PROBLEM, summary, tuple(name for _, name in over), reasons)
    if reasons or not used:
        summary = "disk usage is not readable" if reasons else "brokers before 3.3 do not report disk usage"
        return Check("disks", CheckStatus.UNKNOWN if reasons else CheckStatus.OK, summary, reasons=reasons)
    percent, name = max(used)
    silent = _without_sizes(facts)
    more = f"; {'broker' if len(silent) == 1 else 'brokers'} {', '.join(map(str, silent))} before 3.3: not reported"
    return Check("disks", CheckStatus.OK, f"at most {percent:g} % used{more if silent else ''}", (name,))


def _without_sizes(facts: Facts) -> list[int]:
    """Return brokers that do not report the disk size of an online log dir, e.g. during an upgrade."""
    return [
        node
        for node, dirs in sorted(facts.log_dirs.items())
        if not isinstance(dirs, KctlError) and any(used_percent(each) is None for each in dirs if not each.error)
    ]
