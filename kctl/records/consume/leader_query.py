"""Queries to leaders while records are being read, with retries for unavailable leaders."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, OperationFailed
from kctl.model import TopicPartition
from kctl.records.consume.absence import Absence
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import Answers

_Answer = TypeVar("_Answer")

_RETRY_S = 1.0


class LeaderQuery:
    """A query of leaders about their logs, repeated while some are unavailable.

    follow: retry without a limit; otherwise for timeout_s.
    """

    def __init__(self, options: ConsumeOptions, *, follow: bool) -> None:
        self._timeout_s, self._follow = options.timeout_s, follow
        self._absence = Absence()
        self._since: float | None = None
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Return True if the next attempt may be made."""
        return time.monotonic() >= self._next

    @property
    def pending(self) -> bool:
        """Return True while responses are missing, for at most timeout_s."""
        return self._since is not None and time.monotonic() - self._since <= self._timeout_s

    def ask(
        self, query: Callable[[list[TopicPartition]], Answers[_Answer]], partitions: list[TopicPartition]
    ) -> dict[TopicPartition, _Answer]:
        """Return the responses so far.

        Raises OperationFailed if a topic was deleted or a response is overdue, NotAuthorized.
        """
        try:
            answers, missing, failures = query(partitions)
        except ConnectionFailed as exc:  # no broker returned the leaders
            answers, missing, failures = {}, set(), dict[TopicPartition, KctlError](dict.fromkeys(partitions, exc))
        now = time.monotonic()
        if not missing and not failures:
            self._since = None
            return answers
        self._next = now + _RETRY_S
        self._since = self._since or now
        for tp in sorted(missing):
            if self._absence.lasts(tp.topic, missing=True):
                raise OperationFailed(f"topic {tp.topic} was deleted while it was read")
        for tp, reason in sorted(failures.items(), key=lambda each: each[0]):
            if isinstance(reason, NotAuthorized):
                raise reason
            if now - self._since > self._timeout_s and not self._follow:
                raise OperationFailed(
                    f"partition {tp} could not be read for {self._timeout_s:g} s: {reason.message}", hint=reason.hint
                )
        return answers
