"""What leaders are asked in the midst of a reading, when some of them may be away."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, OperationFailed
from kctl.model import TopicPartition
from kctl.records.consume.absence import Absence
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import Read

_Answer = TypeVar("_Answer")

_ASK_AGAIN_S = 1.0


class Question:
    """What leaders are asked about their logs in the midst of a reading, again and again when some are away.

    follow: for ever; else for timeout_s.
    """

    def __init__(self, options: ConsumeOptions, *, follow: bool) -> None:
        self._timeout_s, self._follow = options.timeout_s, follow
        self._absence = Absence()
        self._since: float | None = None
        self._next = 0.0

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._next

    @property
    def asking(self) -> bool:
        """An answer is waited for, for no longer than timeout_s."""
        return self._since is not None and time.monotonic() - self._since <= self._timeout_s

    def ask(
        self, read: Callable[[list[TopicPartition]], Read[_Answer]], wanted: list[TopicPartition]
    ) -> dict[TopicPartition, _Answer]:
        """What was answered. Raises OperationFailed when the rest has not been for too long, NotAuthorized."""
        try:
            answers, gone, unread = read(wanted)
        except ConnectionFailed as exc:  # nobody could be asked for the leaders
            answers, gone, unread = {}, set(), dict[TopicPartition, KctlError](dict.fromkeys(wanted, exc))
        now = time.monotonic()
        if not gone and not unread:
            self._since = None
            return answers
        self._next = now + _ASK_AGAIN_S
        self._since = self._since or now
        for tp in sorted(gone):
            if self._absence.lasts(tp.topic, missing=True):
                raise OperationFailed(f"topic {tp.topic} was deleted while it was read")
        for tp, reason in sorted(unread.items(), key=lambda each: each[0]):
            if isinstance(reason, NotAuthorized):
                raise reason
            if now - self._since > self._timeout_s and not self._follow:
                raise OperationFailed(
                    f"partition {tp} could not be read for {self._timeout_s:g} s: {reason.message}", hint=reason.hint
                )
        return answers
