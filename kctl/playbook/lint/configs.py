"""Check config values in the arguments of operations, which the command would reject halfway through a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kctl.base.strict_yaml import YamlList, YamlMap
from kctl.errors import InvalidFile, KctlError, Refused, UsageError
from kctl.playbook.expressions.syntax import is_expression
from kctl.playbook.lint.problems import Problems
from kctl.playbook.model import Step

# A problem with a value, and a hint; None if the value is valid, or only a broker can decide.
Fault = tuple[str, str | None] | None
Check = Callable[[str, str], Fault]

_TOPIC_CONFIGS = frozenset({"topic.create", "topic.alter"})


def check_configs(problems: Problems, step: Step) -> None:
    """Report values whose type does not match the config. Warn about values that brokers up to 4.4 reject."""
    arguments = step.arguments
    if step.kind in _TOPIC_CONFIGS:
        _check(problems, arguments, "config", _config_fault("topic"), _config_doubt("topic"))
    elif step.kind == "config.set":
        kind = _kind_of(arguments.get("resource"))
        if kind is not None:
            _check(problems, arguments, "values", _config_fault(kind), _config_doubt(kind))
    elif step.kind == "cluster.create":
        _check(problems, arguments, "config", _setting_fault)
    elif step.kind == "quota.set":
        _check(problems, arguments, "quotas", _quota_fault(arguments))
    elif step.kind == "topic.apply":
        _topics_file(problems, step)


def _check(problems: Problems, arguments: Any, argument: str, fault: Check, doubt: Check | None = None) -> None:
    for holder, key, name, value in _pairs(arguments.get(argument)):
        problem = fault(name, value)
        if problem is not None:
            problems.value(holder, key, *problem)
        elif doubt is not None and (problem := doubt(name, value)) is not None:
            problems.value(holder, key, *problem, warning=True)


def _pairs(value: Any) -> Iterator[tuple[Any, Any, str, str]]:
    """Yield (holder, key, config name, value) of each config, except expressions and values from files."""
    if isinstance(value, YamlMap):
        for name, each in value.items():
            if isinstance(each, (str, int, float)) and not is_expression(each):
                text = str(each).lower() if isinstance(each, bool) else str(each)
                if not text.startswith("@"):
                    yield value, name, str(name), text
    elif isinstance(value, YamlList):
        for place, each in enumerate(value):
            if isinstance(each, str) and "=" in each and not is_expression(each):
                name, _, text = each.partition("=")
                if not text.strip().startswith("@"):
                    yield value, place, name.strip(), text


def _kind_of(resource: Any) -> Any:
    """Return the kind of the resource, even if its name is an expression."""
    from kctl.cluster.config_resources import parse_resource

    if not isinstance(resource, str):
        return None
    kind, slash, name = resource.partition("/")
    if is_expression(kind):
        return None
    if is_expression(name):
        return kind if kind in ("topic", "broker") else None
    try:
        return parse_resource(f"{kind}{slash}{name}").kind
    except UsageError:
        return None  # reported by the check of arguments


def _config_fault(kind: Any) -> Check:
    from kctl.configs.known_types import type_fault

    return lambda name, value: type_fault(kind, name, value)


def _config_doubt(kind: Any) -> Check:
    from kctl.configs.known_types import fault_in

    return lambda name, value: fault_in(kind, name, value)


def _setting_fault(name: str, value: str) -> Fault:
    from kctl.deploy.config.broker_settings import check_setting

    try:
        check_setting(name, value.strip())
    except UsageError as exc:
        return exc.message, exc.hint
    return None


def _quota_fault(arguments: Any) -> Check:
    from kctl.access.quotas import QuotaEntity, parse_quota

    is_ip = arguments.get("ip") or arguments.get("ip_defaults")
    entity = QuotaEntity(ip="10.0.0.1") if is_ip else QuotaEntity(user="x")

    def fault(name: str, value: str) -> Fault:
        try:
            parse_quota(f"{name}={value}", entity)
        except UsageError as exc:
            return exc.message, exc.hint
        return None

    return fault


def _topics_file(problems: Problems, step: Step) -> None:
    """Warn about a topics.yaml that is invalid now; an earlier step may still rewrite it."""
    from kctl.topics.spec import read_specs

    file = step.arguments.get("file")
    if not isinstance(file, str) or is_expression(file) or file == "-" or not Path(file).is_file():
        return
    try:
        read_specs(Path(file))
    except (InvalidFile, Refused) as exc:
        problems.value(step.arguments, "file", exc.message, exc.hint, warning=True)
    except KctlError:
        return
