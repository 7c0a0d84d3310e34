"""Reads the steps of a playbook."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.base.suggestions import did_you_mean
from kctl.base.text import STEERING
from kctl.errors import KctlError, NotFound
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import MAX_PROBLEMS, Problems, position
from kctl.playbook.model import OnError, Step
from kctl.playbook.operations import Operations
from kctl.playbook.own_steps import OWN_STEPS

# key → what it says, for the schema and the docs
STEP_KEYS = {
    "name": "What the step does, for people; its operation when it has no name.",
    "id": "By which a run names the step, also on the command line; made of the name when there is none.",
    "when": "An expression; the step is skipped unless it is true.",
    "loop": "A list, or an expression that gives one; the step is done for each `item`, counted by `index`.",
    "register": "A name for what becomes of the step: value, exit_code, status, error, changed.",
    "until": "An expression; the step is repeated until it is true.",
    "retries": "How often it is repeated when it fails, or until `until` is true; 3 with `until`, else 0.",
    "delay": "The time before each repetition; 5s when not given.",
    "timeout": "The operation's own --timeout: of all it waits for, or of each answer; a program of `run` is ended.",
    "on_error": "fail, or continue with the next step.",
    "accept": "Exit codes that are no failure; [0] when not given.",
    "context": "The cluster of this step, instead of the run's.",
    "dry_run": "true: only what the operation would do, as its value, for steps that show or judge it before.",
    "stdin": "What the operation or program reads as its input.",
}
MAX_STEP_NAME = 200
MAX_RETRIES = 10_000
_ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,98}[a-z0-9])?", re.ASCII)
_STEERING = re.compile(f"[{STEERING}]")
DEFAULT_DELAY_S = 5.0
DEFAULT_RETRIES = 3
_KEY_HINT = "a step has one operation as its key, for example topic.create: {names: [orders]}"


class StepReader:
    """Reads steps; problems are added to those of the file."""

    def __init__(self, problems: Problems, known: Operations, check_identifier: Callable[..., None]) -> None:
        self._problems = problems
        self._known = known
        self._check_identifier = check_identifier
        self.unread: set[str] | None = None  # as Playbook.unread

    def step(self, steps: YamlList, index: int) -> Step | None:
        """The step at that place of a list; None when it cannot be one."""
        body = steps[index]
        if not isinstance(body, YamlMap):
            self._problems.value(steps, index, "a step is a mapping", _KEY_HINT)
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
            written=body,
        )

    # --- what it does

    def _kind(self, body: YamlMap) -> str | None:
        """The one key that is an operation; all others are those of a step."""
        others = [key for key in body if key not in STEP_KEYS][:MAX_PROBLEMS]
        kinds = [key for key in others if self._is_kind(key)]
        for key in others:
            if key not in kinds:
                self._unknown_key(body, key)
        for key in kinds[1:]:
            self._problems.key(body, key, f"a second operation in one step: {key}", f"{kinds[0]} is one already")
        if not others:
            self._problems.key(body, None, "the step does nothing", _KEY_HINT)
        return kinds[0] if kinds else None

    def _is_kind(self, key: Any) -> bool:
        if not isinstance(key, str):
            return False
        if key in OWN_STEPS:
            return True
        try:
            self._known.find(key)
        except NotFound:
            return False
        return True

    def _unknown_key(self, body: YamlMap, key: Any) -> None:
        text = str(key)
        if "." in text:
            near = did_you_mean(text, self._known.names())
            self._problems.key(
                body, key, f"there is no operation {text}", near or "kctl playbook schema has all of them"
            )
            return
        near = did_you_mean(text, [*STEP_KEYS, *OWN_STEPS]) or did_you_mean(text, self._known.names())
        self._problems.key(body, key, f"a step has no {text}", near or f"it has {', '.join(STEP_KEYS)}")

    def _arguments(self, body: YamlMap, kind: str) -> Mapping[str, Any]:
        """As a mapping; a short form is written out."""
        value = body[kind]
        if isinstance(value, YamlMap):
            return value
        empty = YamlMap(body.source, body.values_at[kind])
        if value is None:
            return empty
        own = OWN_STEPS.get(kind)
        if own is None or own.short is None:
            example = f"{kind}: {{}}" if own is None else f"{kind}: {{name: value}}"
            self._problems.value(body, kind, f"the arguments of {kind} are a mapping", f"write {example}")
            return empty
        empty[own.short] = value
        empty.keys_at[own.short] = body.keys_at[kind]
        empty.values_at[own.short] = body.values_at[kind]
        return empty

    # --- who it is

    def _name(self, body: YamlMap, kind: str) -> str:
        name = body.get("name", kind)
        if not isinstance(name, str) or not name.strip():
            self._problems.value(body, "name", "the name of a step is text", "put it in quotes")
            return kind
        unsafe = _STEERING.search(name.strip())
        if unsafe:
            self._problems.value(
                body, "name", f"{unsafe.group()!r} in the name of a step", "a name is one line of text"
            )
        elif len(name) > MAX_STEP_NAME:
            self._problems.value(body, "name", f"the name of a step has more than {MAX_STEP_NAME} characters")
        elif is_expression(name):
            self._problems.value(body, "name", "the name of a step has no expressions", "a report lists it as it is")
        return " ".join(_STEERING.sub(" ", name).split())[:MAX_STEP_NAME]

    def _id(self, body: YamlMap, name: str, kind: str) -> str:
        given = body.get("id")
        if given is None:
            return slug(name) or slug(kind)
        if not isinstance(given, str) or not _ID.fullmatch(given):
            self._problems.value(body, "id", f"{given!r} is not an id", "small letters, digits, - and _, at most 100")
            return slug(str(given)) or slug(name) or slug(kind)
        return given

    # --- how

    def _text(self, body: YamlMap, key: str) -> str | None:
        value = body.get(key)
        if value is not None and not isinstance(value, str):
            self._problems.value(body, key, f"{key} is text, not {value!r}", "put it in quotes")
            return None
        return value

    def _condition(self, body: YamlMap, key: str) -> str | bool | None:
        value = body.get(key)
        if value is None or isinstance(value, (str, bool)):
            return value
        self._problems.value(body, key, f"{key} is an expression", "for example health.exit_code == 0")
        return None

    def _loop(self, body: YamlMap) -> Any:
        value = body.get("loop")
        if value is None or isinstance(value, YamlList):
            return value
        if is_expression(value):
            return value
        hint = f'loop: "{{{{ {value} }}}}"' if isinstance(value, str) else 'loop: [a, b], or "{{ names }}"'
        self._problems.value(body, "loop", "loop is a list, or an expression that gives one", hint)
        return None

    def _retries(self, body: YamlMap, repeats: bool) -> int | str:
        value = body.get("retries", DEFAULT_RETRIES if repeats else 0)
        if is_expression(value):
            return str(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_RETRIES:
            self._problems.value(body, "retries", f"retries is a number from 0 to {MAX_RETRIES:,}, not {value!r}")
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
        """A duration as it was written, checked; a bare number is seconds."""
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
        self._problems.value(body, key, f"{key} is a duration", "for example 500ms, 30s or 5m")
        return None

    def _flag(self, body: YamlMap, key: str) -> bool:
        value = body.get(key, False)
        if not isinstance(value, bool):
            self._problems.value(body, key, f"{key} is true or false", "without quotes, and no expression")
            return False
        return value

    def _on_error(self, body: YamlMap) -> OnError:
        value = body.get("on_error", "fail")
        if value not in ("fail", "continue"):
            self._problems.value(body, "on_error", f"on_error is fail or continue, not {value!r}")
        return "continue" if value == "continue" else "fail"

    def _accept(self, body: YamlMap) -> tuple[int, ...]:
        value = body.get("accept", [0])
        codes = value if isinstance(value, list) else [value]
        if not codes or any(
            isinstance(each, bool) or not isinstance(each, int) or not 0 <= each <= 255 for each in codes
        ):
            self._problems.value(body, "accept", "accept is a list of exit codes", "for example [0, 1]")
            return (0,)
        return tuple(codes)


def _registered(body: Any) -> list[str]:
    """What a step would leave behind, whatever else is wrong with it."""
    name = body.get("register") if isinstance(body, YamlMap) else None
    return [name] if isinstance(name, str) else []


def slug(text: str) -> str:
    """«The cluster is healthy» is the-cluster-is-healthy."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:100].strip("-")
