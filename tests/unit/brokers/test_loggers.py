"""kctl broker loggers set --for: whatever happens between setting and putting back, the way back is taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kctl.base.outcomes import ItemResult
from kctl.brokers import loggers
from kctl.brokers.loggers import LoggerChange
from kctl.commands.app import main
from kctl.commands.broker import loggers as broker_loggers
from kctl.errors import OperationFailed

PLAN = [
    LoggerChange(1, "kafka.request.logger", "WARN", "DEBUG", ItemResult.WOULD_SET),
    LoggerChange(2, "kafka.request.logger", "WARN", "DEBUG", ItemResult.WOULD_SET),
]


class _Brokers:
    """What was asked of brokers, and the rows that were shown. outcome: of each row, or the error of setting."""

    def __init__(self, outcome: Sequence[ItemResult] | Exception) -> None:
        self.outcome = outcome
        self.put_back: list[LoggerChange] = []
        self.slept: list[float] = []
        self.asleep: Callable[[], None] = lambda: None
        self.shown: Sequence[LoggerChange] = ()

    def set_levels(self, _client: object, plan: Sequence[LoggerChange]) -> list[LoggerChange]:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        rows = zip(plan, self.outcome, strict=True)
        return [dataclasses.replace(row, result=result, error=f"why {result}") for row, result in rows]

    def take_back(self, _client: object, done: Sequence[LoggerChange]) -> list[LoggerChange]:
        self.put_back = [row for row in done if row.result in {ItemResult.SET, ItemResult.FAILED}]
        return [
            dataclasses.replace(row, result=ItemResult.PUT_BACK) if row.result is ItemResult.SET else row
            for row in done
        ]

    def emit(self, rows: Sequence[LoggerChange], _tables: object, *, changed: bool) -> None:
        self.shown = rows

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.asleep()

    def run(self, monkeypatch: pytest.MonkeyPatch, for_s: float = 600.0) -> None:
        monkeypatch.setattr(loggers, "set_levels", self.set_levels)
        monkeypatch.setattr(loggers, "restore_levels", self.take_back)
        monkeypatch.setattr("time.sleep", self.sleep)
        inv: Any = self
        client: Any = None
        broker_loggers._set_for(inv, client, PLAN, for_s)


def test_set_waited_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers([ItemResult.SET, ItemResult.SET])
    brokers.run(monkeypatch)
    assert (brokers.slept, [row.result for row in brokers.shown]) == ([600.0], ["put back", "put back"])


def test_any_error_takes_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the time is beyond what clocks know."""
    brokers = _Brokers([ItemResult.SET, ItemResult.SET])
    with pytest.raises(OverflowError):
        brokers.run(monkeypatch, for_s=1e18)
    assert [row.broker for row in brokers.put_back] == [1, 2]
    assert [row.result for row in brokers.shown] == ["put back", "put back"]


def test_an_error_of_setting_takes_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was set before it is not known: all are looked at."""
    brokers = _Brokers(ValueError("an answer that cannot be read"))
    with pytest.raises(OperationFailed):
        brokers.run(monkeypatch)
    assert [row.broker for row in brokers.put_back] == [1, 2]
    assert brokers.slept == []


def test_a_failure_is_told_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    brokers = _Brokers([ItemResult.SET, ItemResult.FAILED])
    told: list[str] = []
    brokers.asleep = lambda: told.append(capsys.readouterr().err)
    with pytest.raises(OperationFailed):
        brokers.run(monkeypatch)
    (err,) = told
    assert "broker 2: kafka.request.logger was not set: why failed" in err


def test_nothing_set_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers([ItemResult.FAILED, ItemResult.FAILED])
    with pytest.raises(OperationFailed):
        brokers.run(monkeypatch)
    assert brokers.slept == []
    assert [row.broker for row in brokers.put_back] == [1, 2]


@pytest.mark.usefixtures("one_command_tree")
def test_longer_than_anybody_waits(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["broker", "loggers", "set", "kafka=DEBUG", "--for", "9999d", "--bootstrap-server", "127.0.0.1:1"]
    assert main(argv) == 2
    assert "longer than 30 days" in capsys.readouterr().err
