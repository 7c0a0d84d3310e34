"""Confirmation before something is destroyed, moved or interrupted."""

from __future__ import annotations

import sys

from kctl.base.text import printable
from kctl.errors import NotConfirmed, UsageError


def interactive() -> bool:
    """Return True if a user can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:  # Ctrl-D
        sys.stderr.write("\n")
    return answer.strip()


def ask_word(prompt: str) -> str:
    """Return the text typed after a prompt; "" at the end of input."""
    return _ask(printable(prompt))


def confirm(question: str, *, yes: bool) -> None:
    """Ask "question [y/N]" on a terminal. Raises NotConfirmed unless the answer is yes, or without a terminal.

    Ctrl-C raises KeyboardInterrupt (exit 130); the end of input counts as no.
    """
    if yes:
        return
    if not interactive():
        raise NotConfirmed(
            f"not confirmed: {question}", hint="there is no terminal for a prompt; to confirm, use --yes"
        )
    if _ask(f"{printable(question)} [y/N] ").lower() not in {"y", "yes"}:
        raise NotConfirmed("not confirmed; nothing was changed", hint="")


def confirm_name(question: str, *names: str, typed: str | None, reason: str = "") -> None:
    """Ask the user to type one of `names`, unless `typed` (--confirm-cluster) is one of them.

    reason: why a name is required, e.g. the context that protects the cluster. Raises UsageError if `typed` is another
    name, and NotConfirmed as `confirm` does.
    """
    either = " or ".join(names)
    if typed is not None:
        if typed not in names:
            raise UsageError(
                f"--confirm-cluster is {typed!r}, but the command would act on {' or '.join(map(repr, names))}",
                hint=f"{reason}; nothing was changed" if reason else "nothing was changed",
            )
        return
    why = f"{reason}; " if reason else ""
    if not interactive():
        raise NotConfirmed(
            f"not confirmed: {question}",
            hint=f"{why}there is no terminal for a prompt; to confirm, use --confirm-cluster {names[0]}",
        )
    reason_line = f"{printable(reason)}\n" if reason else ""
    if _ask(f"{reason_line}{printable(question)}\nType the name {printable(either)} to confirm: ") not in names:
        raise NotConfirmed("the name does not match; nothing was changed", hint="")
