"""When unread messages are deleted, and when a group loses the first."""

from __future__ import annotations

import pytest

from kctl.history.retention.deletion import Deletion, Limits, Log, deletion, loss_eta_ms

HOUR = 3_600_000
LOG = Log(log_start_offset=1000, log_end_offset=2000, size_bytes=100_000, produced_per_s=10.0)  # 100 bytes each
BOTH = Limits("delete", retention_ms=24 * HOUR, retention_bytes=150_000)


@pytest.mark.parametrize(
    ("committed", "age", "log", "limits", "by_time", "by_bytes"),
    [
        (1500, 6 * HOUR, LOG, BOTH, 18 * HOUR, 100_000),  # 500 follow it, 1500 may: 1000 more at 10 a second
        (1500, 30 * HOUR, LOG, BOTH, 0, 100_000),  # expired: at the next check
        (200, 6 * HOUR, LOG, BOTH, 18 * HOUR, 50_000),  # what is left begins at 1000
        (1500, 6 * HOUR, LOG, BOTH._replace(cleanup_policy="compact"), None, None),
        (1500, 6 * HOUR, LOG, BOTH._replace(cleanup_policy="compact,delete"), 18 * HOUR, 100_000),
        (1500, 6 * HOUR, LOG, BOTH._replace(cleanup_policy=None), None, None),
        (1500, 6 * HOUR, LOG, Limits("delete", -1, -1), None, None),  # without limits
        (1500, 6 * HOUR, LOG, Limits("delete"), None, None),
        (1500, None, LOG, BOTH, None, 100_000),
        (1500, 6 * HOUR, LOG, Limits("delete", -1, 40_000), None, 0),  # 50,000 follow it already
        (1500, 6 * HOUR, LOG, Limits("delete", 0, 0), 0, 0),
        (2000, 0, LOG, BOTH, None, None),  # nothing is unread
        (None, None, LOG, BOTH, None, None),
        (1500, 6 * HOUR, LOG._replace(log_end_offset=None), BOTH, None, None),
        (1500, 6 * HOUR, LOG._replace(size_bytes=None), BOTH, 18 * HOUR, None),
        (1500, 6 * HOUR, LOG._replace(size_bytes=0), BOTH, 18 * HOUR, None),
        (1500, 6 * HOUR, LOG._replace(produced_per_s=0.0), BOTH, 18 * HOUR, None),
        (1500, 6 * HOUR, LOG._replace(produced_per_s=None), BOTH, 18 * HOUR, None),
        (1500, 6 * HOUR, LOG._replace(produced_per_s=1e-300), BOTH, 18 * HOUR, None),
        (1500, 6 * HOUR, LOG._replace(produced_per_s=1 / 3000), BOTH, 18 * HOUR, None),  # in 34 days, by such a rate
        (1500, 6 * HOUR, LOG, Limits("delete", 2000 * HOUR, -1), 1994 * HOUR, None),  # but retention.ms is no rate
    ],
)
def test_deletion(
    committed: int | None, age: int | None, log: Log, limits: Limits, by_time: int | None, by_bytes: int | None
) -> None:
    found = deletion(committed, age, log, limits)
    assert found == Deletion(by_time, by_bytes)
    assert found.eta_ms == min((x for x in (by_time, by_bytes) if x is not None), default=None)


@pytest.mark.parametrize(
    ("eta", "consumed", "produced", "loss"),
    [
        (HOUR, 0.0, 10.0, HOUR),  # stopped
        (HOUR, None, 10.0, HOUR),
        (HOUR, 5.0, 10.0, 2 * HOUR),  # half as fast: overtaken after twice the time
        (HOUR, 7.5, 10.0, 4 * HOUR),
        (HOUR, 10.0, 10.0, None),
        (HOUR, 9.99, 10.0, None),  # in 41 days: no rates are measured so exactly
        (2000 * HOUR, 0.0, 10.0, 2000 * HOUR),
        (HOUR, 20.0, 10.0, None),
        (HOUR, 1.0, 0.0, None),
        (HOUR, 1.0, None, None),
        (0, 20.0, 10.0, 0),  # it may happen at any moment
        (None, 0.0, 10.0, None),
    ],
)
def test_loss(eta: int | None, consumed: float | None, produced: float | None, loss: int | None) -> None:
    assert loss_eta_ms(Deletion(eta, None), consumed, produced) == loss
    assert loss_eta_ms(Deletion(None, eta), consumed, produced) == loss


def test_a_group_that_keeps_up_loses_nothing_but_what_may_be_deleted_at_once() -> None:
    assert loss_eta_ms(Deletion(HOUR, None), 5.0, 10.0, keeps_up=True) is None
    assert loss_eta_ms(Deletion(0, HOUR), 5.0, 10.0, keeps_up=True) == 0


def test_a_group_that_is_simulated_loses_its_first_message_then() -> None:
    """Reader and deletion step by step, against the formula."""
    produced, consumed, limit = 10.0, 6.0, 200_000
    end, committed = 2000.0, 1500.0
    expected = loss_eta_ms(deletion(1500, None, LOG, Limits("delete", -1, limit)), consumed, produced)
    seconds = 0
    while end - committed < limit / 100:
        end, committed, seconds = end + produced, committed + consumed, seconds + 1
    assert expected == pytest.approx(seconds * 1000, abs=1000)
