"""kctl completion: scripts that complete kctl's commands, options and names in a shell.

The scripts call kctl with _KCTL_COMPLETE=complete_line and the line up to the cursor in _KCTL_LINE, and receive one
line per match: the word, and after a tab an optional explanation. They evaluate nothing in these lines, and add no
space after "KEY=" and "topic/". Typer's own scripts pass the words of the shell instead: bash splits words at ":" and
"=", so a line with HOST:PORT could not be completed.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from kctl.commands.terminal import output
from kctl.errors import UsageError

_BASH = r"""_kctl_completion() {
    local line=${COMP_LINE:0:COMP_POINT} breaks= word tail value
    word=${line##*[[:space:]]}
    # bash replaces only the text after its last word break.
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
    tail=$word
    [[ -n $breaks ]] && tail=${word##*["$breaks"]}
    COMPREPLY=()
    while IFS= read -r value; do
        value=${value%%$'\t'*}
        [[ -n $value ]] && COMPREPLY+=("${value#"${word%"$tail"}"}")
    done < <(_KCTL_COMPLETE=complete_line _KCTL_LINE="$line" kctl 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o bashdefault -o default -F _kctl_completion kctl"""

_ZSH = r"""#compdef kctl
_kctl() {
    local -a open closed
    local line value
    for line in "${(@f)$(_KCTL_COMPLETE=complete_line _KCTL_LINE="${words[1,CURRENT]}" kctl 2>/dev/null)}"; do
        value=${${line%%$'\t'*}//:/\\:}
        [[ $line == *$'\t'* ]] && value+=:${line#*$'\t'}
        case ${line%%$'\t'*} in
            '') ;;
            *[=/]) open+=("$value") ;;
            *) closed+=("$value") ;;
        esac
    done
    if (( $#open + $#closed )); then
        _describe kctl closed -- open -S ''
    else
        _files
    fi
}
if [[ $funcstack[1] == _kctl ]]; then _kctl "$@"; else compdef _kctl kctl; fi"""

_FISH = r"""function __kctl_complete
    set -l found (_KCTL_COMPLETE=complete_line _KCTL_LINE=(commandline -cp | string collect) kctl 2>/dev/null)
    if string length -q -- $found
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command kctl --no-files --arguments '(__kctl_complete)'"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
SHELLS = tuple(_SCRIPTS)


def command(
    shell: Annotated[
        str, typer.Argument(metavar="bash|zsh|fish", help="Shell to complete in.", autocompletion=lambda: list(SHELLS))
    ],
) -> None:
    """Print the completion script for a shell.

    # Install completion for bash
    kctl completion bash > ~/.local/share/bash-completion/completions/kctl
    """
    if shell not in _SCRIPTS:
        raise UsageError(f"{shell!r} is not a supported shell", hint=f"use one of {', '.join(SHELLS)}")
    output.write_line(_SCRIPTS[shell])


def answer_by_lines() -> None:
    """Register the class that answers the completion scripts with click."""
    from typer._click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

    class LineCompletion(ShellComplete):
        name = "line"
        source_template = ""

        def source_vars(self) -> dict[str, Any]:
            return {}

        def get_completion_args(self) -> tuple[list[str], str]:
            line = os.environ.get("_KCTL_LINE", "")
            words = split_arg_string(line)[1:]
            return (words[:-1], words[-1]) if words and not line[-1].isspace() else (words, "")

        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            # Without any match, the scripts let the shell complete files.
            return [item for item in super().get_completions(args, incomplete) if item.type == "plain"]

        def format_completion(self, item: CompletionItem) -> str:
            return f"{item.value}\t{' '.join(item.help.split())}" if item.help else str(item.value)

    add_completion_class(LineCompletion, LineCompletion.name)
