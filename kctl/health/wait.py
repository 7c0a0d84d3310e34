"""Wait until a cluster is healthy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import AuthenticationFailed, ConnectionFailed
from kctl.health.assess import are_facts_hidden, assess
from kctl.health.collect import collect_facts
from kctl.health.model import Health, HealthLimits

if TYPE_CHECKING:
    from kctl.protocol.target import Target

_POLL_S = 1.0
_ROUND_S = 10.0  # limit of one pass: a broker that hangs must not use up the timeout


def wait_until_healthy(
    target: Target, limits: HealthLimits, *, timeout_s: float, progress: Callable[[str], None] | None = None
) -> Health:
    """Assess the cluster until it is healthy or the timeout expires, and return the last assessment.

    An unreachable cluster is retried. kctl does not wait for facts that the user may not read.
    Raises AuthenticationFailed at once, and ConnectionFailed if no pass succeeded before the timeout.
    """
    from kctl.protocol.client import connect

    report = progress or (lambda _message: None)
    deadline = Deadline(timeout_s)
    while True:
        health: Health | None = None
        try:
            with connect(target, timeout_s=max(1.0, min(_ROUND_S, deadline.left_s))) as client:
                facts = collect_facts(client)
                health = assess(facts, limits)
                if are_facts_hidden(facts) and not health.problems:
                    return health
        except AuthenticationFailed:
            raise
        except ConnectionFailed as exc:
            if deadline.expired:
                raise
            report(exc.message)
        if health is not None:
            if health.healthy or deadline.expired:
                return health
            report("; ".join(f"{check.check}: {check.summary}" for check in health.problems) or "unknown")
        time.sleep(min(_POLL_S, deadline.left_s))
