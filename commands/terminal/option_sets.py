"""Sets of options that are declared once: the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

import typer

Options = TypeVar("Options")


def takes_options(
    options: type[Options],
) -> Callable[[Callable[[typer.Context, Options], None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as options, in their order.

    The fields are annotated as the parameters of a command are. The command itself takes the context and a value of
    the dataclass.
    """

    def decorate(function: Callable[[typer.Context, Options], None]) -> Callable[..., None]:
        @wraps(function)
        def command(ctx: typer.Context, **values: Any) -> None:
            function(ctx, options(**values))

        parameters = _parameters(options)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads both
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def _parameters(options: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    return [
        context,
        *(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in fields(options)
        ),
    ]
