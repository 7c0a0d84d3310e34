"""Options that several commands share, as one dataclass: each field is an option of the commands that use it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

_PARAMETER = "options"


def takes_options(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: its parameter `options` is a `kind`, whose fields become options of the command.

    The fields are annotated like parameters of a command, and take the position of `options`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        names = [field.name for field in fields(kind)]

        def run(ctx: Any, **values: Any) -> None:
            options = kind(**{name: values.pop(name) for name in names})
            command(ctx, **{_PARAMETER: options}, **values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += _fields(kind) if parameter.name == _PARAMETER else [_keyword(parameter)]
        run.__name__, run.__module__, run.__doc__ = command.__name__, command.__module__, command.__doc__
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
        return run

    return decorate


def _fields(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


def _keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter of the command; all but the first are keyword-only."""
    is_context = parameter.name == "ctx"
    return parameter if is_context else parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
