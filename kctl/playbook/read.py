"""Read a playbook from YAML and report every problem with its position."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from kctl.base.strict_yaml import YamlList, YamlMap, load
from kctl.errors import InvalidFile
from kctl.playbook.lint.problems import Problems, as_error, in_order, position
from kctl.playbook.model import PARAMETER_TYPES, RESERVED_NAMES, VERSION, Parameter, Playbook, Problem, Step
from kctl.playbook.operations import Operations, operations

MAX_BYTES = 1 << 20
MAX_NAME = 100
MAX_STEPS = 1000
MAX_DESCRIPTION = 2000
NO_FORMAT = "`playbook` with the format version is missing"
KEYS = ("playbook", "name", "description", "parameters", "steps", "on_failure", "finally")
PARAMETER_KEYS = ("type", "description", "default", "secret", "choices", "minimum", "maximum")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,63}", re.ASCII)
_ORDER_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_KEYWORDS = frozenset({
    "and", "else", "false", "if", "in", "is", "none", "not", "or", "true", "range",
})  # fmt: skip


def read(data: bytes | str, *, source: Path | None, file: str, definitions: Operations | None = None) -> Playbook:
    """Parse a playbook. Raises InvalidFile with all problems of its form; lint reports problems of its content.

    source: the file that was read, if any. file: its name in problems.
    """
    playbook, problems = read_all(data, source=source, file=file, definitions=definitions)
    if playbook is None or problems:
        raise as_error(problems, file)
    return playbook


def read_all(
    data: bytes | str, *, source: Path | None, file: str, definitions: Operations | None = None
) -> tuple[Playbook | None, list[Problem]]:
    """Parse a playbook. Return the readable part (None if nothing is readable) and the problems."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    problems = Problems(file)
    try:
        document = load(raw, source=file, max_bytes=MAX_BYTES)
    except InvalidFile as exc:
        return None, [_yaml_problem(exc, file)]
    if not isinstance(document, YamlMap):
        problems.at(1, 1, "a playbook must be a mapping", f"start with playbook: {VERSION}, name and steps")
        return None, problems.rows
    _check_display_order(raw, problems)
    playbook = _DocumentReader(document, problems, definitions or operations()).playbook(raw, source, file)
    return playbook, in_order(problems.rows)


def _check_display_order(raw: bytes, problems: Problems) -> None:
    """Report characters that change the displayed order of a line, so that it misleads a reviewer (CVE-2021-42574)."""
    for number, line in enumerate(raw.decode("utf-8-sig").split("\n"), 1):
        match = _ORDER_MARKS.search(line)
        if match:
            message = f"the character U+{ord(match.group()):04X} changes the display order of the line"
            problems.at(number, match.start() + 1, message, f"write \\u{ord(match.group()):04x} in double quotes")


def _yaml_problem(error: InvalidFile, file: str) -> Problem:
    """Convert an error of the YAML reader, "file:line:column: message", to a problem."""
    match = re.match(r":([0-9]+):([0-9]+): ", error.message.removeprefix(file))
    if not match:
        return Problem(file, 1, 1, error.message.removeprefix(f"{file}: "), error.hint)
    message = error.message[len(file) + match.end() :]
    return Problem(file, int(match[1]), int(match[2]), message, error.hint)


class _DocumentReader:
    """A reader of one document. Invalid parts are reported and omitted."""

    def __init__(self, document: YamlMap, problems: Problems, definitions: Operations) -> None:
        self._document = document
        self._problems = problems
        self._definitions = definitions
        self._unread: set[str] | None = None

    def playbook(self, raw: bytes, source: Path | None, file: str) -> Playbook:
        document = self._document
        self._problems.unknown_keys(document, KEYS, "a playbook")
        self._version()
        name = self._name()
        description = self._text_of(document, "description", "a playbook", MAX_DESCRIPTION)
        parameters = self._parameters()
        steps = self._steps("steps", required=True)
        on_failure = self._steps("on_failure")
        finally_ = self._steps("finally")
        self._ids(steps + on_failure + finally_)
        return Playbook(
            name=name,
            description=description,
            parameters=parameters,
            steps=steps,
            on_failure=on_failure,
            finally_=finally_,
            source=source,
            file=file,
            text=raw.decode("utf-8-sig"),
            digest=hashlib.sha256(raw).hexdigest(),
            unread=None if self._unread is None else frozenset(self._unread),
        )

    def _version(self) -> None:
        version = self._document.get("playbook")
        if version != VERSION or isinstance(version, bool):
            message = f"unknown format version {version!r}" if "playbook" in self._document else NO_FORMAT
            self._problems.value(self._document, "playbook", message, f"write playbook: {VERSION}")

    def _name(self) -> str:
        name = self._document.get("name")
        if "name" not in self._document:
            self._problems.key(self._document, None, "the playbook has no name", "e.g. name: rolling-restart")
        elif not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:
            self._problems.value(
                self._document,
                "name",
                f"{name!r} is not a valid name",
                "use lowercase letters, digits and -, e.g. topic-audit",
            )
        return name if isinstance(name, str) else ""

    def _text_of(self, mapping: YamlMap, key: str, what: str, limit: int) -> str:
        """Return an optional string with whitespace collapsed."""
        text = mapping.get(key, "")
        if not isinstance(text, str):
            self._problems.value(mapping, key, f"the {key} of {what} must be a string", "put it in quotes")
            return ""
        if len(text) > limit:
            self._problems.value(mapping, key, f"the {key} of {what} exceeds {limit:,} characters")
        return " ".join(text.split())

    # --- parameters

    def _parameters(self) -> tuple[Parameter, ...]:
        entries = self._document.get("parameters")
        if entries is None:
            return ()
        if not isinstance(entries, YamlMap):
            self._problems.value(
                self._document, "parameters", "parameters must be a mapping of names", "e.g. name: {type: string}"
            )
            return ()
        parameters = (self._parameter(entries, name) for name in entries if not self._problems.full)
        return tuple(each for each in parameters if each is not None)

    def _parameter(self, entries: YamlMap, name: Any) -> Parameter | None:
        self.check_identifier(entries, name, "a parameter")
        body = entries[name]
        if not isinstance(body, YamlMap):
            self._problems.value(entries, name, f"the parameter {name} must be a mapping", f"{name}: {{type: string}}")
            return None
        what = f"the parameter {name}"
        self._problems.unknown_keys(body, PARAMETER_KEYS, what)
        kind = body.get("type", "string")
        if kind not in PARAMETER_TYPES:
            from kctl.base.suggestions import did_you_mean

            hint = did_you_mean(str(kind), PARAMETER_TYPES) or f"one of {', '.join(PARAMETER_TYPES)}"
            self._problems.value(body, "type", f"{what} has the unknown type {kind!r}", hint)
            kind = "string"
        parameter = Parameter(
            name=str(name),
            type=kind,
            default=None,
            required="default" not in body,
            secret=self._flag(body, "secret", what),
            description=self._text_of(body, "description", what, MAX_DESCRIPTION),
            choices=self._choices(body, what),
            minimum=self._bound(body, "minimum", kind, what),
            maximum=self._bound(body, "maximum", kind, what),
            where=position(entries, name),
        )
        return self._with_default(parameter, body)

    def _with_default(self, parameter: Parameter, body: YamlMap) -> Parameter:
        """Return the parameter with its default, after checking its default and choices."""
        from dataclasses import replace

        from kctl.playbook.parameters import as_typed, plain

        default = plain(body.get("default"))
        for key, value in [("choices", each) for each in parameter.choices] + [("default", default)]:
            if value is None:
                continue
            try:
                as_typed(parameter if key == "default" else replace(parameter, choices=()), value)
            except InvalidFile as exc:
                self._problems.value(body, key, exc.message, exc.hint)
        if parameter.secret and default is not None:
            self._problems.key(body, "default", f"the secret {parameter.name} has a default", "remove the default")
        return replace(parameter, default=default)

    def _flag(self, body: YamlMap, key: str, what: str) -> bool:
        value = body.get(key, False)
        if not isinstance(value, bool):
            self._problems.value(body, key, f"{key} of {what} must be true or false, not {value!r}")
        return value is True

    def _choices(self, body: YamlMap, what: str) -> tuple[Any, ...]:
        value = body.get("choices", [])
        if not isinstance(value, list) or ("choices" in body and not value):
            self._problems.value(body, "choices", f"the choices of {what} must be a list of values")
            return ()
        return tuple(value)

    def _bound(self, body: YamlMap, key: str, kind: str, what: str) -> float | None:
        value = body.get(key)
        if value is None:
            return None
        if kind not in {"integer", "number"}:
            self._problems.key(body, key, f"{what} is not a number and cannot have a {key}")
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            self._problems.value(body, key, f"the {key} of {what} must be a number")
        else:
            return value
        return None

    def check_identifier(self, holder: YamlMap, name: Any, what: str, *, of_value: str | None = None) -> None:
        """Check the name of a parameter, register or variable. of_value: the key whose value is the name."""
        message = hint = None
        if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
            message, hint = f"{name!r} is not a valid name for {what}", "use at most 64 lowercase letters, digits and _"
        elif name in RESERVED_NAMES:
            message, hint = f"{name} is reserved: {RESERVED_NAMES[name]}", f"rename {what}"
        elif name in _KEYWORDS:
            message, hint = f"{name} is a keyword of expressions", f"rename {what}"
        if message and of_value:
            self._problems.value(holder, of_value, message, hint)
        elif message:
            self._problems.key(holder, name, message, hint)

    # --- steps

    def _steps(self, key: str, *, required: bool = False) -> tuple[Step, ...]:
        from kctl.playbook.read_steps import StepReader

        entries = self._document.get(key)
        if entries is None and not required:
            return ()
        if not isinstance(entries, YamlList) or (required and not entries):
            message = f"{key} must be a list of steps" if key in self._document else f"the playbook has no {key}"
            self._problems.value(self._document, key, message, "- name: …")
            return ()
        reader = StepReader(self._problems, self._definitions, self.check_identifier)
        if len(entries) > MAX_STEPS:
            message = f"{key} has {len(entries):,} steps, more than {MAX_STEPS:,}"
            self._problems.value(self._document, key, message, "use loop, or move steps to another file and include it")
        steps = [
            reader.step(entries, index) for index in range(min(len(entries), MAX_STEPS)) if not self._problems.full
        ]
        if reader.unread is not None:
            self._unread = (self._unread or set()) | reader.unread
        return tuple(each for each in steps if each is not None)

    def _ids(self, steps: tuple[Step, ...]) -> None:
        """Check that ids are unique."""
        first: dict[str, Step] = {}
        for step in steps:
            before = first.setdefault(step.id, step)
            if before is not step:
                hint = f"the first is on line {before.where.line}; set a different id"
                self._problems.key(
                    step.body, "id" if "id" in step.body else "name", f"duplicate step id {step.id}", hint
                )
