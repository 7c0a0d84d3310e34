"""Check whether the endpoints of the voters respond: after a name has changed, voters cannot reach each other.

Only connects and closes the connection, so no security settings are needed.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from functools import partial

from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.quorum.recover_log import Endpoint

_LIMIT_S = 2.0
_NO_RESPONSE = "no response"


def endpoint_problems(endpoints: Iterable[Endpoint], *, limit_s: float = _LIMIT_S) -> dict[Endpoint, str | None]:
    """Return why each endpoint cannot be reached from this machine; None if something accepts the connection."""
    deadline = Deadline(limit_s)
    addresses = list(dict.fromkeys(endpoints))
    results = run_all({each: partial(_problem, each, deadline) for each in addresses}, deadline)
    problems: dict[Endpoint, str | None] = {}
    for each in addresses:
        result = results.get(each, _NO_RESPONSE)
        problems[each] = None if result == "" else str(result)
    return problems


def _problem(endpoint: Endpoint, deadline: Deadline) -> str:
    try:
        with socket.create_connection((endpoint.host, endpoint.port), timeout=max(0.1, deadline.left_s)):
            return ""
    except socket.gaierror:
        return "the name does not resolve"
    except ConnectionRefusedError:
        return "connection refused"
    except TimeoutError:
        return _NO_RESPONSE
    except (OSError, UnicodeError, OverflowError) as exc:
        return getattr(exc, "strerror", None) or str(exc)
