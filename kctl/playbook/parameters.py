"""Collect and validate the values of a playbook's parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.base.secrets import Redactor, Warn, check_secret_file, ignore, read_secret
from kctl.base.strict_yaml import YamlMap, load
from kctl.base.suggestions import closest, did_you_mean
from kctl.base.text import encodable
from kctl.base.units import parse_duration_ms, parse_size
from kctl.errors import InvalidFile, KctlError, UsageError
from kctl.playbook.expressions.json_text import value_of_json
from kctl.playbook.model import Parameter, Playbook

ENVIRONMENT = "KCTL_PARAM_"
MAX_FILE_BYTES = 1 << 20
_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False}
_EXAMPLES = {
    "duration": "e.g. 30s or 5m",
    "size": "e.g. 512, 64MB or 1GiB",
    "list": 'e.g. ["a", "b"]',
    "mapping": 'e.g. {"a": 1}',
}


@dataclass(frozen=True, slots=True)
class Values:
    """The values of all parameters; None for optional ones that are not set."""

    values: Mapping[str, Any] = field(repr=False)
    secrets: frozenset[str]

    @property
    def public(self) -> dict[str, Any]:
        """Return the values without secrets."""
        return {name: value for name, value in self.values.items() if name not in self.secrets}

    @property
    def redactor(self) -> Redactor:
        """Return a redactor that hides the secrets in output and journals."""
        return Redactor(self.values.get(name) for name in sorted(self.secrets))


def collect(
    playbook: Playbook,
    inputs: Sequence[str] = (),
    *,
    file: Mapping[str, Any] | None = None,
    secrets: Sequence[str] = (),
    environment: Mapping[str, str],
    warn: Warn = ignore,
) -> Values:
    """Return the values for a run.

    inputs: NAME=VALUE from the command line. secrets: NAME=@FILE. Precedence: the command line, KCTL_PARAM_NAME, the
    file, the default. warn: called for a secret's file that other users can read. Raises UsageError with all problems.
    """
    problems: list[str] = []
    typed_values: dict[str, Any] = {}
    for name, value in (file or {}).items():
        _put(playbook, typed_values, problems, str(name), value)
    for parameter in playbook.parameters:
        text = environment.get(ENVIRONMENT + parameter.name.upper())
        if text is not None:
            _put(playbook, typed_values, problems, parameter.name, text)
    for name, text in _pairs(inputs, "-p", problems):
        parameter_ = playbook.parameter(name)
        if parameter_ is not None and parameter_.secret:
            problems.append(f"{name} is a secret and must not be on the command line: use --secret {name}=@FILE")
            continue
        _put(playbook, typed_values, problems, name, text)
    for name, path in _pairs(secrets, "--secret", problems):
        _secret(playbook, typed_values, problems, name, path, warn)
    return _complete(playbook, typed_values, problems)


def misspelled(playbook: Playbook, environment: Mapping[str, str]) -> list[str]:
    """Return a warning for each unused variable whose name resembles a parameter's.

    Others are ignored: a CI job may set variables for other playbooks.
    """
    names = [each.name.upper() for each in playbook.parameters]
    free = [name for name in names if ENVIRONMENT + name not in environment]
    unknown = {each.removeprefix(ENVIRONMENT) for each in environment if each.startswith(ENVIRONMENT)}.difference(names)
    return [
        f"{ENVIRONMENT}{name} is not a parameter of {playbook.name}: did you mean {ENVIRONMENT}{match}?"
        for name in sorted(unknown)
        for match in closest(name, free, limit=1)
    ]


def read_values(playbook: Playbook, path: Path, *, warn: Warn = ignore) -> dict[str, Any]:
    """Return the values in a YAML or JSON file. warn: called if the file holds a secret and other users can read it.

    Raises NotFound, InvalidFile, and UsageError for a file with a secret that other users can write.
    """
    data, name = read_input(path, max_bytes=MAX_FILE_BYTES)
    typed_values = load(data, source=name, max_bytes=MAX_FILE_BYTES)
    if not isinstance(typed_values, YamlMap):
        raise InvalidFile(f"{name} must be a mapping of names to values", hint="e.g. topic: orders")
    secret = next((each.name for each in playbook.parameters if each.secret and each.name in typed_values), None)
    if secret is not None and str(path) != "-":
        check_secret_file(path, secret, warn=warn)
    return {str(key): plain(value) for key, value in typed_values.items()}


def included(playbook: Playbook, inputs: Mapping[str, Any], secrets: frozenset[str]) -> Values:
    """Return the values for an included playbook.

    secrets: parameters whose values come from secrets of the includer. Raises UsageError.
    """
    problems: list[str] = []
    typed_values: dict[str, Any] = {}
    for name, value in inputs.items():
        _put(playbook, typed_values, problems, str(name), value)
    values = _complete(playbook, typed_values, problems)
    return Values(values.values, values.secrets | secrets)


def _complete(playbook: Playbook, typed_values: dict[str, Any], problems: list[str]) -> Values:
    for parameter in playbook.parameters:
        if parameter.name in typed_values:
            continue
        if parameter.required and not any(line.startswith(f"{parameter.name} ") for line in problems):
            problems.append(
                f"{parameter.name} is missing{f': {parameter.description}' if parameter.description else ''}"
            )
        typed_values[parameter.name] = parameter.default
    if problems:
        one = len(problems) == 1
        raise UsageError(
            f"{playbook.name}: {problems[0]}" if one else f"{playbook.name}: parameters: {'; '.join(problems[:3])}"
            + (f"; and {len(problems) - 3:,} more" if len(problems) > 3 else ""),
            hint=f"see `kctl playbook show {playbook.name}`",
            details={"problems": problems},
        )  # fmt: skip
    return Values(typed_values, frozenset(each.name for each in playbook.parameters if each.secret))


def _pairs(texts: Sequence[str], option: str, problems: list[str]) -> list[tuple[str, str]]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            problems.append(f"{option} takes NAME=VALUE" if option == "-p" else f"{option} takes NAME=@FILE")
        elif name in pairs:
            problems.append(f"{name} is set twice")
        else:
            pairs[name] = value
    return list(pairs.items())


def _put(playbook: Playbook, typed_values: dict[str, Any], problems: list[str], name: str, value: Any) -> None:
    parameter = playbook.parameter(name)
    if parameter is None:
        suggestion = did_you_mean(name, [each.name for each in playbook.parameters])
        problems.append(f"{name} is not a parameter{f': {suggestion}' if suggestion else ''}")
        return
    try:
        typed_values[name] = as_typed(
            parameter, from_text(parameter, value) if isinstance(value, str) else plain(value)
        )
    except InvalidFile as exc:
        problems.append(exc.message + (f" ({exc.hint})" if exc.hint else ""))


def _secret(
    playbook: Playbook, typed_values: dict[str, Any], problems: list[str], name: str, path: str, warn: Warn
) -> None:
    parameter = playbook.parameter(name)
    if not path.startswith("@"):
        problems.append(f"--secret takes {name}=@FILE: other users can see command lines")
    elif parameter is not None and not parameter.secret:
        problems.append(f"{name} is not a secret: use -p {name}=VALUE")
    else:
        try:
            _put(playbook, typed_values, problems, name, read_secret(name, None, path[1:], warn=warn) or "")
        except UsageError as exc:
            problems.append(exc.message)


def plain(value: Any) -> Any:
    """Return lists and mappings without their positions in a file."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def from_text(parameter: Parameter, text: str) -> Any:
    """Convert a string from the command line or the environment to the parameter's type, if possible."""
    if parameter.type in {"integer", "number"} and len(text) <= 64:
        if _INTEGER.fullmatch(text):
            return int(text)
        if parameter.type == "number" and _NUMBER.fullmatch(text):
            return float(text)
    if parameter.type == "boolean":
        return _WORDS.get(text.lower(), text)
    if parameter.type == "list" and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    if parameter.type in {"list", "mapping"}:
        try:
            return value_of_json(text)
        except ValueError:
            return text
    return text


def as_typed(parameter: Parameter, value: Any) -> Any:
    """Return the value if it is valid for the parameter. Raises InvalidFile, without the value of a secret."""
    value_text = "that" if parameter.secret else repr(value)[:80]
    expected, fits = _TYPES[parameter.type]
    if isinstance(value, str) and not encodable(value):
        raise InvalidFile(f"{parameter.name} must be UTF-8 text")
    if value is None and not parameter.required:
        return None
    if not fits(value):
        hint = _example(parameter, value)
        raise InvalidFile(f"{parameter.name} must be {expected}, not {value_text}", hint=hint)
    if parameter.secret and isinstance(value, str) and len(value) < Redactor.SHORTEST:
        raise InvalidFile(f"{parameter.name} is a secret and must have at least {Redactor.SHORTEST} characters")
    if parameter.choices and value not in parameter.choices:
        suggestion = did_you_mean(str(value), map(str, parameter.choices))
        choices = f"one of {', '.join(map(str, parameter.choices))}"
        raise InvalidFile(f"{parameter.name} must be {choices}, not {value_text}", hint=suggestion)
    if parameter.minimum is not None and value < parameter.minimum:
        raise InvalidFile(f"{parameter.name} must be at least {parameter.minimum:g}, not {value_text}")
    if parameter.maximum is not None and value > parameter.maximum:
        raise InvalidFile(f"{parameter.name} must be at most {parameter.maximum:g}, not {value_text}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _parses(parse: Any) -> Any:
    def fits(value: Any) -> bool:
        try:
            parse(str(value))
        except KctlError:
            return False
        return isinstance(value, str) or _is_number(value)

    return fits


def _example(parameter: Parameter, value: Any) -> str | None:
    if parameter.type == "string":
        return "put it in quotes" if _is_number(value) else None
    return _EXAMPLES.get(parameter.type)


_TYPES: dict[str, tuple[str, Any]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": ("an integer", _is_whole),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "list": ("a list", lambda value: isinstance(value, list)),
    "mapping": ("a mapping", lambda value: isinstance(value, dict)),
    "duration": ("a duration", _parses(parse_duration_ms)),
    "size": ("a size", _parses(parse_size)),
}
