"""Read the steps of a playbook."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.base.suggestions import did_you_mean
from kctl.base.text import STEERING
from kctl.errors import KctlError, NotFound
from kctl.playbook.builtin_step_table import BUILTIN_STEPS
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import MAX_PROBLEMS, Problems, position
from kctl.playbook.model import OnError, Step
from kctl.playbook.operations import Operations

# key → description, for the schema and the docs
STEP_KEYS = {
    "name": "Description of the step for reports (default: its operation).",
    "id": "Id of the step in a run and on the command line (default: derived from the name).",
    "when": "Expression; the step is skipped unless it is true.",
    "loop": "List, or expression that returns one; the step runs for each `item`, at its `index`.",
    "register": "Name for the result of the step: value, exit_code, status, error, changed.",
    "until": "Expression; the step is repeated until it is true.",
    "retries": "Maximum repetitions after a failure or while `until` is false (default: 3 with `until`, else 0).",
    "delay": "Time before each repetition (default: 5s).",
    "timeout": "The --timeout of the operation; a program of `run` is stopped after this time.",
    "on_error": "fail, or continue with the next step (default: fail).",
    "accept": "Exit codes that count as success (default: [0]).",
    "context": "Context for this step (default: the cluster of the run).",
    "dry_run": "true: run the operation as a dry run; its value is what it would do.",
    "stdin": "Standard input of the operation or program.",
}
MAX_STEP_NAME = 200
MAX_RETRIES = 10_000
_ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,98}[a-z0-9])?", re.ASCII)
_STEERING = re.compile(f"[{STEERING}]")
DEFAULT_DELAY_S = 5.0
DEFAULT_RETRIES = 3
_KEY_HINT = "a step has one operation as its key, e.g. topic.create: {names: [orders]}"


class StepReader:
    """A reader of steps that adds problems to those of the file."""

    def __init__(self, problems: Problems, definitions: Operations, check_identifier: Callable[..., None]) -> None:
        self._problems = problems
        self._definitions = definitions
        self._check_identifier = check_identifier
        self.unread: set[str] | None = None  # as Playbook.unread

    def step(self, steps: YamlList, index: int) -> Step | None:
        """Return the step at this index; None if it is unreadable."""
        body = steps[index]
        if not isinstance(body, YamlMap):
            self._problems.value(steps, index, "a step must be a mapping", _KEY_HINT)
        kind = self._kind(body) if isinstance(body, YamlMap) else None
        if kind is None:
            self.unread = {*(self.unread or ()), *_registered(body)}
            return None
        name = self._name(body, kind)
        until = self._condition(body, "until")
        register = body.get("register")
        if register is not None:
            self._check_identifier(body, register, "a register", of_value="register")
        return Step(
            id=self._id(body, name, kind),
            name=name,
            kind=kind,
            arguments=self._arguments(body, kind),
            when=self._condition(body, "when"),
            loop=self._loop(body),
            register=register if isinstance(register, str) else None,
            until=until,
            retries=self._retries(body, until is not None),
            delay_s=self._delay(body),
            timeout=self._duration(body, "timeout"),
            on_error=self._on_error(body),
            accept=self._accept(body),
            context=self._text(body, "context"),
            stdin=self._text(body, "stdin"),
            dry_run=self._flag(body, "dry_run"),
            where=position(body),
            body=body,
        )

    # --- the operation

    def _kind(self, body: YamlMap) -> str | None:
        """Return the only key that is an operation; all other keys must be step keys."""
        others = [key for key in body if key not in STEP_KEYS][:MAX_PROBLEMS]
        kinds = [key for key in others if self._is_kind(key)]
        for key in others:
            if key not in kinds:
                self._unknown_key(body, key)
        for key in kinds[1:]:
            self._problems.key(body, key, f"the step has a second operation, {key}", f"the first is {kinds[0]}")
        if not others:
            self._problems.key(body, None, "the step has no operation", _KEY_HINT)
        return kinds[0] if kinds else None

    def _is_kind(self, key: Any) -> bool:
        if not isinstance(key, str):
            return False
        if key in BUILTIN_STEPS:
            return True
        try:
            self._definitions.find(key)
        except NotFound:
            return False
        return True

    def _unknown_key(self, body: YamlMap, key: Any) -> None:
        text = str(key)
        if "." in text:
            near = did_you_mean(text, self._definitions.names())
            self._problems.key(
                body, key, f"unknown operation {text}", near or "run `kctl playbook schema` to list all operations"
            )
            return
        near = did_you_mean(text, [*STEP_KEYS, *BUILTIN_STEPS]) or did_you_mean(text, self._definitions.names())
        self._problems.key(body, key, f"unknown step key {text}", near or f"valid keys: {', '.join(STEP_KEYS)}")

    def _arguments(self, body: YamlMap, kind: str) -> Mapping[str, Any]:
        """Return the arguments as a mapping; the short form is expanded."""
        value = body[kind]
        if isinstance(value, YamlMap):
            return value
        empty = YamlMap(body.source, body.values_at[kind])
        if value is None:
            return empty
        builtin = BUILTIN_STEPS.get(kind)
        if builtin is None or builtin.short is None:
            example = f"{kind}: {{}}" if builtin is None else f"{kind}: {{name: value}}"
            self._problems.value(body, kind, f"the arguments of {kind} must be a mapping", f"e.g. {example}")
            return empty
        empty[builtin.short] = value
        empty.keys_at[builtin.short] = body.keys_at[kind]
        empty.values_at[builtin.short] = body.values_at[kind]
        return empty

    # --- name and id

    def _name(self, body: YamlMap, kind: str) -> str:
        name = body.get("name", kind)
        if not isinstance(name, str) or not name.strip():
            self._problems.value(body, "name", "the name of a step must be a string", "put it in quotes")
            return kind
        unsafe = _STEERING.search(name.strip())
        if unsafe:
            self._problems.value(
                body, "name", f"the name of the step contains {unsafe.group()!r}", "write the name on one line"
            )
        elif len(name) > MAX_STEP_NAME:
            self._problems.value(body, "name", f"the name of the step exceeds {MAX_STEP_NAME} characters")
        elif is_expression(name):
            self._problems.value(body, "name", "the name of a step cannot contain expressions", "use plain text")
        return " ".join(_STEERING.sub(" ", name).split())[:MAX_STEP_NAME]

    def _id(self, body: YamlMap, name: str, kind: str) -> str:
        step_id = body.get("id")
        if step_id is None:
            return slug(name) or slug(kind)
        if not isinstance(step_id, str) or not _ID.fullmatch(step_id):
            hint = "use at most 100 lowercase letters, digits, - and _"
            self._problems.value(body, "id", f"{step_id!r} is not a valid id", hint)
            return slug(str(step_id)) or slug(name) or slug(kind)
        return step_id

    # --- settings

    def _text(self, body: YamlMap, key: str) -> str | None:
        value = body.get(key)
        if value is not None and not isinstance(value, str):
            self._problems.value(body, key, f"{key} must be a string, not {value!r}", "put it in quotes")
            return None
        return value

    def _condition(self, body: YamlMap, key: str) -> str | bool | None:
        value = body.get(key)
        if value is None or isinstance(value, (str, bool)):
            return value
        self._problems.value(body, key, f"{key} must be an expression", "e.g. health.exit_code == 0")
        return None

    def _loop(self, body: YamlMap) -> Any:
        value = body.get("loop")
        if value is None or isinstance(value, YamlList):
            return value
        if is_expression(value):
            return value
        hint = f'loop: "{{{{ {value} }}}}"' if isinstance(value, str) else 'loop: [a, b], or "{{ names }}"'
        self._problems.value(body, "loop", "loop must be a list, or an expression that returns one", hint)
        return None

    def _retries(self, body: YamlMap, repeats: bool) -> int | str:
        value = body.get("retries", DEFAULT_RETRIES if repeats else 0)
        if is_expression(value):
            return str(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_RETRIES:
            self._problems.value(body, "retries", f"retries must be 0 to {MAX_RETRIES:,}, not {value!r}")
            return 0
        return value

    def _delay(self, body: YamlMap) -> float | str:
        value = self._duration(body, "delay")
        if value is None:
            return DEFAULT_DELAY_S
        if is_expression(value):
            return value
        from kctl.base.units import parse_duration_ms

        return parse_duration_ms(value) / 1000

    def _duration(self, body: YamlMap, key: str) -> str | None:
        """Return a duration as written, after checking it. A bare number is in seconds."""
        from kctl.base.units import parse_duration_ms

        value = body.get(key)
        if value is None or is_expression(value):
            return value
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                parse_duration_ms(str(value))
            except KctlError as exc:
                self._problems.value(body, key, exc.message, exc.hint)
                return None
            return str(value)
        self._problems.value(body, key, f"{key} must be a duration", "e.g. 500ms, 30s or 5m")
        return None

    def _flag(self, body: YamlMap, key: str) -> bool:
        value = body.get(key, False)
        if not isinstance(value, bool):
            self._problems.value(body, key, f"{key} must be true or false", "write it without quotes or expressions")
            return False
        return value

    def _on_error(self, body: YamlMap) -> OnError:
        value = body.get("on_error", "fail")
        if value not in ("fail", "continue"):
            self._problems.value(body, "on_error", f"on_error must be fail or continue, not {value!r}")
        return "continue" if value == "continue" else "fail"

    def _accept(self, body: YamlMap) -> tuple[int, ...]:
        value = body.get("accept", [0])
        codes = value if isinstance(value, list) else [value]
        if not codes or any(
            isinstance(each, bool) or not isinstance(each, int) or not 0 <= each <= 255 for each in codes
        ):
            self._problems.value(body, "accept", "accept must be a list of exit codes", "e.g. [0, 1]")
            return (0,)
        return tuple(codes)


def _registered(body: Any) -> list[str]:
    """Return the name that an unreadable step would register, as a list."""
    name = body.get("register") if isinstance(body, YamlMap) else None
    return [name] if isinstance(name, str) else []


def slug(text: str) -> str:
    """Return the text as an id: "The cluster is healthy" → "the-cluster-is-healthy"."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:100].strip("-")
