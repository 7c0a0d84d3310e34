"""Find values derived from secrets, which are secret too: upper case, a substring, a URL that contains one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from kctl.playbook.expressions.evaluation import value_of
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.expressions.syntax import Expression
from kctl.playbook.lint.names import Site, expressions_of, sites_of, sites_within
from kctl.playbook.model import Step


def names_with_secrets(step: Step, secret: frozenset[str]) -> frozenset[str]:
    """Return the names of secret variables within the step. secret: names outside it."""
    looped = step.loop is not None and _names(sites_within(step.body, "loop", step.loop)) & secret
    return secret | {"item"} if looped else secret


def derived_secret_names(step: Step, secret: frozenset[str]) -> frozenset[str]:
    """Return names in `set`, or parameters of an include, whose expressions use secrets."""
    if step.kind == "include":
        sources = step.arguments.get("parameters")
    else:
        sources = step.arguments if step.kind == "set" else None
    if not isinstance(sources, Mapping):
        return frozenset()
    return frozenset(
        str(name) for name, value in sources.items() if _names(sites_within(sources, name, value)) & secret
    )


def values_with_secrets(step: Step, variables: Mapping[str, Any], secret: frozenset[str]) -> list[object]:
    """Return the values of all expressions that use a secret, except conditions, which are never displayed."""
    values: list[object] = []
    for expression in _expressions(site for site in sites_of(step) if not site.alone):
        if any(used.name in secret for used in expression.names):
            with suppress(ExpressionError):  # the step will fail
                values.append(value_of(expression, variables))
    return values


def _names(sites: Iterator[Site]) -> frozenset[str]:
    return frozenset(used.name for expression in _expressions(sites) for used in expression.names)


def _expressions(sites: Iterator[Site]) -> Iterator[Expression]:
    for site in sites:
        with suppress(ExpressionError):
            yield from (expression for expression, _ in expressions_of(site))
