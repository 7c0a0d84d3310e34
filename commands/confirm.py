"""The one way to ask before something is destroyed, moved or interrupted."""

from __future__ import annotations

import sys

from kctl.errors import NotConfirmed, UsageError
from kctl.text import printable


def interactive() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:  # Ctrl-D
        sys.stderr.write("\n")
    return answer.strip()


def ask_word(prompt: str) -> str:
    """What is typed behind a prompt; "" at the end of input."""
    return _ask(printable(prompt))


def confirm(question: str, *, yes: bool) -> None:
    """Ask «question [y/N]» on a terminal. Raises NotConfirmed on anything but yes, or with nobody to ask.

    Ctrl-C is KeyboardInterrupt (exit 130); the end of input is a no.
    """
    if yes:
        return
    if not interactive():
        raise NotConfirmed(f"not confirmed: {question}", hint="there is no terminal to ask on; give --yes to go ahead")
    if _ask(f"{printable(question)} [y/N] ").lower() not in {"y", "yes"}:
        raise NotConfirmed("not confirmed; nothing was changed", hint="")


def confirm_name(question: str, name: str, *, given: str | None) -> None:
    """Ask for `name` to be typed, unless `given` (from --confirm-cluster) is it already.

    Raises UsageError when `given` is another name, NotConfirmed as `confirm` does.
    """
    if given is not None:
        if given != name:
            raise UsageError(
                f"--confirm-cluster says {given!r}, but this would act on {name!r}",
                hint="nothing was changed",
            )
        return
    if not interactive():
        raise NotConfirmed(
            f"not confirmed: {question}",
            hint=f"there is no terminal to ask on; give --confirm-cluster {name} to go ahead",
        )
    if _ask(f"{printable(question)}\nType the name {printable(name)} to go ahead: ") != name:
        raise NotConfirmed("the name was not typed; nothing was changed", hint="")
