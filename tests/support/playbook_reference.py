"""The reference in docs/playbooks.md, generated from the rules of the reader, lint and expressions.

`python tests/support/playbook_reference.py` regenerates it and playbooks/playbook.schema.json.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

from kctl.commands.terminal.operations import JSON_LINES
from kctl.playbook import schema
from kctl.playbook.builtin_step_table import BUILTIN_STEPS, BuiltinArgument
from kctl.playbook.expressions.filters import FILTERS, FUNCTIONS
from kctl.playbook.expressions.functions import Function
from kctl.playbook.expressions.limits import (
    CPU_SECONDS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_NESTING,
    MAX_RESULT,
    MAX_TEXT,
    MAX_TEXT_EXPRESSIONS,
    MAX_VALUES,
)
from kctl.playbook.expressions.value_tests import TESTS
from kctl.playbook.model import MAX_INCLUDE_DEPTH, PARAMETER_TYPES, REGISTER_FIELDS, RESERVED_NAMES
from kctl.playbook.operations import Argument, Operation, operations
from kctl.playbook.read import MAX_STEPS
from kctl.playbook.read_steps import STEP_KEYS

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "playbooks.md"
SCHEMA = ROOT / "playbooks" / "playbook.schema.json"
BEGIN = "<!-- reference: made by tests/support/playbook_reference.py -->\n"
END = "<!-- end of the reference -->\n"

_KEYS = {
    "playbook": "Version of the format: 1.",
    "name": "Lowercase letters, digits and `-`.",
    "description": "Purpose of the playbook.",
    "parameters": "Parameters by name; see below.",
    "steps": "Steps, run in this order.",
    "on_failure": "Steps that run if a step failed.",
    "finally": "Steps that always run at the end, also after Ctrl-C.",
}
_PARAMETER_KEYS = {
    "type": f"One of {', '.join(f'`{each}`' for each in PARAMETER_TYPES)} (default: `string`).",
    "description": "Shown by `kctl playbook show`.",
    "default": "Value if none is set. Without a default, a value is required; `null` makes the parameter optional.",
    "secret": "`true`: never shown or stored; set with `--secret NAME=@FILE` or `KCTL_PARAM_NAME`.",
    "choices": "Allowed values.",
    "minimum": "Lowest allowed number.",
    "maximum": "Highest allowed number.",
}
_OPERATORS = """\
- numbers: `+ - * / // % **`; strings and lists: `+`; `~` joins strings and numbers into a string
- comparisons: `== != < <= > >=`, `in`, `not in`, `is`
- booleans: `and`, `or`, `not` (only `true` and `false` are accepted); `a if b else c`
- access: `x.key`, `x['key']`, `x[0]`, `x[1:3]`
- literals: lists, mappings, numbers, quoted strings, `true`, `false`, `none`
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _keys(keys: Mapping[str, str]) -> Iterator[str]:
    yield from _table(("key", "meaning"), ((f"`{key}`", text) for key, text in keys.items()))


def _builtin() -> Iterator[str]:
    for step in BUILTIN_STEPS.values():
        short = f" In short: `{step.name}: {step.short.upper()}`." if step.short else ""
        yield f"**`{step.name}`** {step.summary}{short}\n"
        if step.free:
            yield "The keys are the names of the variables.\n"
            continue
        yield from _table(("argument", "type", "meaning"), (_own_row(each) for each in step.arguments))


def _own_row(argument: BuiltinArgument) -> tuple[str, str, str]:
    kinds = {"text": "string", "texts": "list of strings", "flag": "true or false", "condition": "expression"}
    kind = " or ".join(argument.choices) or kinds.get(argument.kind, argument.kind)
    if argument.kind == "condition" and argument.many:
        kind = "expression, or list of them"
    return f"`{argument.name}`{' (required)' if argument.required else ''}", kind, argument.help


def _functions(table: Mapping[str, Function]) -> Iterator[str]:
    yield from _table(("name", "result"), ((f"`{_call(name, each)}`", each.summary) for name, each in table.items()))


def _call(name: str, function: Function) -> str:
    """Return a signature, e.g. `join(separator, attribute)`."""
    found = list(inspect.signature(function.call).parameters.values())
    own = [each for each in found if each.name != "value"]
    arguments = ", ".join("…" if each.kind is each.VAR_POSITIONAL else each.name for each in own)
    return f"{name}({arguments})" if arguments else name


def _operations() -> Iterator[str]:
    known = operations()
    aliases = {name: alias for alias, name in known.aliases().items()}
    for name in known.names():
        found = known.find(name)
        also = f", also `{aliases[name]}`" if name in aliases else ""
        yield f"**`{name}`**{also} · {_effect(found)} · {found.summary}\n"
        if found.arguments:
            yield ", ".join(_argument(each) for each in found.arguments) + "\n"


def _effect(operation: Operation) -> str:
    if not operation.changes:
        return "read-only"
    return "changes" if operation.dry_run else "changes, no dry run"


def _argument(argument: Argument) -> str:
    kind = {"flag": "true or false", "integer": "number", "number": "number", "text": ""}[argument.kind]
    several = f"list of {kind}s" if kind else "list"
    if argument.choices:
        kind = " or ".join(argument.choices)
        several = f"list of {kind}"
    if argument.many:
        kind = "mapping or list" if argument.pairs else several
    told = "; ".join(part for part in (kind, "required" if argument.required else "") if part)
    return f"`{argument.name}`{f' ({told})' if told else ''}"


def render() -> str:
    """Return the reference as Markdown."""
    lines = ["### Keys of a playbook\n", *_keys(_KEYS)]
    lines += [f"`steps`, `on_failure` and `finally` have at most {MAX_STEPS:,} steps each.\n"]
    lines += ["### Keys of a parameter\n", *_keys(_PARAMETER_KEYS)]
    lines += [
        "### Keys of a step\n",
        "Each step also has one key that is an operation or one of the built-in steps below.\n",
    ]
    lines += [*_keys(STEP_KEYS)]
    lines += ["### Built-in steps\n", *_builtin()]
    lines += [f"Includes may be nested {MAX_INCLUDE_DEPTH} levels deep. A playbook must not include itself.\n"]
    lines += ["### Names in expressions\n"]
    given = {**RESERVED_NAMES, "a register": f"the result of its step: {', '.join(REGISTER_FIELDS)}"}
    lines += [
        *_table(("name", "meaning"), ((name if " " in name else f"`{name}`", text) for name, text in given.items()))
    ]
    streams = ", ".join(f"`{name.replace(' ', '.')}`" for name in sorted(JSON_LINES))
    lines += [f"`value` is the JSON output of the command (`-o json`). For {streams}, it is always a list.\n"]
    lines += ["### Operators\n", _OPERATORS]
    limits = f"at most {MAX_CHARACTERS:,} characters, a string {MAX_TEXT >> 20} MiB, a list {MAX_ITEMS:,} items"
    lines += [f"An expression has {limits}, an integer 64 bits."]
    nesting = f"Operators, filters and brackets may be nested {MAX_NESTING} levels deep"
    lines += [f"{nesting}. The expressions of one argument may use {CPU_SECONDS:g} s of CPU time."]
    inserted = f"Expressions insert at most {MAX_VALUES:,} values and {MAX_RESULT >> 20} Mi characters into one step"
    nested = f"Inserted values may be nested {MAX_DEPTH} levels deep"
    expressions = f"A string has at most {MAX_TEXT_EXPRESSIONS:,} expressions"
    lines += [f"{inserted}, counting repetitions. {nested}. {expressions}.\n"]
    lines += ["### Filters\n", "`value | filter`, or `value | filter(arguments)`.\n", *_functions(FILTERS)]
    lines += ["### Tests\n", "`value is test`, `value is not test(argument)`.\n", *_functions(TESTS)]
    lines += ["### Functions\n", *_functions(FUNCTIONS)]
    lines += ["### Operations\n", "`kctl COMMAND --help` describes the arguments.\n", *_operations()]
    return "\n".join(lines).rstrip() + "\n"


def page(text: str) -> str:
    """Return the page with the current reference."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render()}\n{END}{after}"


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema.text(), encoding="utf-8")
