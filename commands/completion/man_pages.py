"""Manual pages from the command tree: one for kctl, and one for each group and command.

    python -m kctl.commands.completion.man_pages ~/.local/share/man/man1

Typer's help has plain paragraphs, code in backticks and examples; the pages are roff with the macros of man(7).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from kctl import __version__
from kctl.commands.app import EXIT_MEANINGS, GROUPS, load, root
from kctl.commands.terminal.common_options import help_record, is_common
from kctl.commands.terminal.examples import split_examples

MARKER = '.\\" A manual page of kctl, made from its command tree.'
_ENVIRONMENT = {
    "KCTL_CONTEXT": "Context to use, unless --context is set.",
    "KCTL_CONFIG": "Config file with the contexts (default: $XDG_CONFIG_HOME/kctl/config.yaml).",
    "KCTL_SCHEMA_REGISTRY": "URL of the schema registry, unless --schema-registry is set.",
    "KCTL_PARAM_NAME": "Parameter NAME of a playbook, unless -p is set.",
}
_CODE = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def man_pages() -> dict[str, str]:
    """Return the text of each page by its file name, e.g. kctl-topic-list.1."""
    tree = [("kctl", root()), *(pair for name in GROUPS for pair in _tree(f"kctl {name}", load(name)))]
    return {f"{path.replace(' ', '-')}.1": "\n".join(_page(path, command)) + "\n" for path, command in tree}


def write_pages(folder: Path) -> None:
    """Write all pages into a folder. Pages of commands that no longer exist are removed; foreign files stay."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = man_pages()
    for path in [*folder.glob("kctl.1"), *folder.glob("kctl-*.1")]:
        with path.open(encoding="utf-8", errors="replace") as file:
            if file.readline().rstrip("\n") == MARKER:
                path.unlink()
            else:
                pages.pop(path.name, None)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def _tree(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _tree(f"{path} {name}", inner)


def _page(path: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    text, examples = split_examples(command.help)
    summary, _, description = text.partition("\n\n")
    yield MARKER
    page = _escape(path.replace(" ", "-"))
    yield f'.TH "{page.upper()}" "1" "" "kctl {__version__}" "kctl manual"'
    yield from (".nh", ".ad l")  # no hyphens within names, no stretched lines
    yield from (".SH NAME", f"{page} \\- {_escape(_joined(summary).replace('`', '').rstrip('.'))}")
    yield from (".SH SYNOPSIS", f"\\fB{_escape(path)}\\fP {_escape(' '.join(command.collect_usage_pieces(context)))}")
    yield from (".SH DESCRIPTION", *_paragraphs([summary, *description.split("\n\n")]))
    yield from _section("COMMANDS", _subcommands(path, command))
    records = [(p, help_record(p, context)) for p in command.get_params(context)]
    arguments = [record for p, record in records if record and p.param_type_name == "argument"]
    yield from _section("ARGUMENTS", arguments)
    yield from _section("OPTIONS", (r for p, r in records if r and r not in arguments and not is_common(p)))
    yield from _section("GLOBAL OPTIONS", (record for p, record in records if record and is_common(p)))
    if examples:
        yield ".SH EXAMPLES"
        for example in examples:
            yield from (".PP", ".nf", ".RS 4", *(_line(_escape(line)) for line in example), ".RE", ".fi")
    if path == "kctl":
        yield from _section("EXIT STATUS", ((str(int(code)), text) for code, text in EXIT_MEANINGS.items()))
        yield from _section("ENVIRONMENT", _ENVIRONMENT.items())
    yield from _see_also(path)


def _subcommands(path: str, command: Any) -> list[tuple[str, str]]:
    if path == "kctl":
        return [(f"kctl-{name}(1)", text) for name, (_, text) in GROUPS.items()]
    prefix = path.replace(" ", "-")
    return [
        (f"{prefix}-{name}(1)", _joined((inner.help or "").partition("\n\n")[0]))
        for name, inner in getattr(command, "commands", {}).items()
    ]


def _see_also(path: str) -> Iterator[str]:
    words = path.split()
    parents = ["-".join(words[:count]) for count in range(1, len(words))]
    if parents:
        yield ".SH SEE ALSO"
        yield ", ".join(f"\\fB{_escape(name)}\\fP(1)" for name in parents)
        yield from (".PP", f"Exit codes and environment variables are described in \\fB{parents[0]}\\fP(1).")


def _section(title: str, records: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [line for names, text in records for line in (".TP", _names(names), _line(_styled(_joined(text))))]
    if lines:
        yield from (f".SH {title}", *lines)


def _names(text: str) -> str:
    """Return option names in bold; their metavars stay plain."""
    escaped = _escape(text)
    if not text.startswith("-"):
        return f"\\fB{escaped}\\fP"
    return re.sub(r"(?<!\w)((?:\\-){1,2}[\w\\-]+)", r"\\fB\1\\fP", escaped)


def _paragraphs(texts: list[str]) -> Iterator[str]:
    for text in texts:
        if text.strip():
            yield from (".PP", _line(_styled(_joined(text))))


def _joined(text: str) -> str:
    return " ".join(text.split())


def _styled(text: str) -> str:
    """Return the text with code spans and option names in bold."""
    parts = _CODE.split(text)
    for index, part in enumerate(parts):
        parts[index] = f"\\fB{_escape(part)}\\fP" if index % 2 else _WORD.sub(_bold_option, _escape_text(part))
    return "".join(parts)


def _bold_option(match: re.Match[str]) -> str:
    return f"\\fB{_escape(match[1])}\\fP"


def _escape_text(text: str) -> str:
    """Escape all but hyphens: those of prose may stay, and _styled escapes those of options."""
    text = text.replace("\\", "\\e").replace("…", "...")
    return "".join(char if ord(char) < 128 else f"\\[u{ord(char):04X}]" for char in text)


def _escape(text: str) -> str:
    return _escape_text(text).replace("-", "\\-")


def _line(text: str) -> str:
    """Protect a line that would begin with a control character."""
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
