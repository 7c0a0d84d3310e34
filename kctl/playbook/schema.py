"""Build the JSON Schema of playbooks, for editors.

Draft 2020-12 (https://json-schema.org/draft/2020-12). `lint` is stricter: it also checks names, expressions and
positional arguments.
"""

from __future__ import annotations

from typing import Any

from kctl.playbook.builtin_step_table import BUILTIN_STEPS, BuiltinArgument, BuiltinStep
from kctl.playbook.model import PARAMETER_TYPES, VERSION
from kctl.playbook.operations import Argument, Operation, Operations, operations
from kctl.playbook.read import MAX_NAME
from kctl.playbook.read_steps import MAX_RETRIES, MAX_STEP_NAME, STEP_KEYS

_MAX_INDENT = 3  # deeper levels stay on one line
_EXPRESSION = {"type": "string", "pattern": r"\{\{.*\}\}"}
_SCALAR = {"type": ["string", "number", "boolean"]}
_DURATION = {
    "type": ["string", "number"], "minimum": 0, "pattern": r"\{\{|^\s*[0-9]+(\.[0-9]+)?\s*([mM][sS]|[smhdwSMHDW])?\s*$",
}  # fmt: skip
_CONDITION = {"type": ["string", "boolean"]}
_TYPES: dict[str, dict[str, Any]] = {
    "flag": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "text": _SCALAR,
}


def schema(definitions: Operations | None = None) -> dict[str, Any]:
    """Return the schema."""
    definitions = definitions or operations()
    step_operations = [definitions.find(name) for name in sorted({*definitions.names(), *definitions.aliases()})]
    kinds = {
        **{each.name: _builtin(each) for each in BUILTIN_STEPS.values()},
        **{each.name: _operation(each) for each in step_operations},
    }
    steps = {"type": "array", "items": {"$ref": "#/$defs/step"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kctl playbook",
        "description": "A playbook for kctl playbook run; see docs/playbooks.md.",
        "type": "object",
        "required": ["playbook", "name", "steps"],
        "additionalProperties": False,
        "properties": {
            "playbook": {"const": VERSION, "description": "Format version."},
            "name": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": MAX_NAME},
            "description": {"type": "string"},
            "parameters": {
                "type": ["object", "null"],
                "propertyNames": {"pattern": "^[a-z_][a-z0-9_]{0,63}$"},
                "additionalProperties": {"$ref": "#/$defs/parameter"},
            },
            "steps": {**steps, "minItems": 1},
            "on_failure": {**steps, "description": "Steps to run after a step failed; `failure` describes it."},
            "finally": {**steps, "description": "Steps that always run, also after a failure or Ctrl-C."},
        },
        "$defs": {"parameter": _parameter(), "step": _step(kinds)},
    }


def _parameter() -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "type": {"enum": list(PARAMETER_TYPES), "default": "string"},
            "description": {"type": "string"},
            "default": {"description": "A parameter without a default is required."},
            "secret": {"type": "boolean", "description": "Never stored or displayed; set by file or environment."},
            "choices": {"type": "array", "minItems": 1},
            "minimum": {"type": "number"},
            "maximum": {"type": "number"},
        },
    }


def _step(kinds: dict[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {
        "name": {"type": "string", "minLength": 1, "maxLength": MAX_STEP_NAME},
        "id": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9_-]{0,98}[a-z0-9])?$"},
        "when": _CONDITION,
        "loop": {"anyOf": [{"type": "array"}, _EXPRESSION]},
        "register": {"type": "string", "pattern": "^[a-z_][a-z0-9_]{0,63}$"},
        "until": _CONDITION,
        "retries": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_RETRIES}, _EXPRESSION]},
        "delay": _DURATION,
        "timeout": _DURATION,
        "on_error": {"enum": ["fail", "continue"]},
        "accept": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 255},
                {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": 255}},
            ]
        },
        "context": {"type": "string"},
        "dry_run": {"type": "boolean"},
        "stdin": {"type": "string"},
    }
    described = {key: {**keys[key], "description": text} for key, text in STEP_KEYS.items()}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {**described, **kinds},
        "oneOf": [{"required": [kind]} for kind in kinds],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    required = [each.name for each in operation.arguments if each.required]
    body: dict[str, Any] = {
        "description": operation.summary,
        "type": "object" if required else ["object", "null"],
        "additionalProperties": False,
        "properties": {each.name: _argument(each) for each in operation.arguments},
    }
    return {**body, "required": required} if required else body


def _argument(argument: Argument) -> dict[str, Any]:
    value: dict[str, Any] = {"enum": list(argument.choices)} if argument.choices else _TYPES[argument.kind]
    forms = [value] if argument.kind == "text" and not argument.choices else [value, _EXPRESSION]
    if argument.many:
        items = {"anyOf": forms} if len(forms) > 1 else value
        forms = [*forms, {"type": "array", "items": items}]
        if argument.pairs:
            forms.append({"type": "object", "additionalProperties": _SCALAR})
    body: dict[str, Any] = {"anyOf": forms} if len(forms) > 1 else dict(value)
    if argument.help:
        body["description"] = argument.help
    if argument.default not in (None, False, [], ()):
        body["default"] = argument.default
    return body


def _builtin(step: BuiltinStep) -> dict[str, Any]:
    if step.free:
        return {"description": step.summary, "type": "object", "minProperties": 1}
    body: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name: {**_builtin_argument(each), "description": each.help} for each in step.arguments},
    }
    required = [each.name for each in step.arguments if each.required]
    if required:
        body["required"] = required
    if step.one_of:
        body["oneOf"] = [{"required": [name]} for name in step.one_of]
    short = step.argument(step.short) if step.short else None
    forms = [body, _builtin_argument(short)] if short else [body]
    return {"description": step.summary, "anyOf": forms}


def _builtin_argument(argument: BuiltinArgument) -> dict[str, Any]:
    if argument.kind == "texts":
        return {"anyOf": [{"type": "array", "minItems": 1, "items": _SCALAR}, _EXPRESSION]}
    if argument.kind == "condition":
        many = [{"type": "array", "minItems": 1, "items": _CONDITION}] if argument.many else []
        return {"anyOf": [_CONDITION, *many]} if many else dict(_CONDITION)
    if argument.kind == "mapping":
        return {"anyOf": [{"type": "object"}, _EXPRESSION]}
    if argument.kind == "duration":
        return dict(_DURATION)
    if argument.kind == "flag":
        return {"type": "boolean"}
    return {"enum": list(argument.choices)} if argument.choices else {"type": "string"}


def text(definitions: Operations | None = None) -> str:
    """Return the schema as text with one line per operation, so that diffs stay small."""
    return _laid_out(schema(definitions), "") + "\n"


def _laid_out(value: Any, indent: str) -> str:
    import json

    if not isinstance(value, dict) or len(indent) > _MAX_INDENT or not value:
        return json.dumps(value, ensure_ascii=False)
    rows = [f"{indent} {json.dumps(key)}: {_laid_out(each, indent + ' ')}" for key, each in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
