"""kctl completion: the script that makes a shell complete kctl's commands and options."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands import output
from kctl.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_KCTL_COMPLETE"  # the script calls kctl with this set; kctl.commands.app answers


def command(
    shell: Annotated[
        str, typer.Argument(metavar="bash|zsh|fish", help="The shell.", autocompletion=lambda: list(SHELLS))
    ],
) -> None:
    """Print the completion script of a shell.

    Example: kctl completion bash > ~/.local/share/bash-completion/completions/kctl
    """
    from typer._completion_shared import get_completion_script

    if shell not in SHELLS:
        raise UsageError(f"{shell!r} is no shell that kctl knows", hint=f"use one of {', '.join(SHELLS)}")
    output.write_line(get_completion_script(prog_name="kctl", complete_var=COMPLETE_VARIABLE, shell=shell))
