"""Read and set the log levels of running brokers (KIP-412, brokers ≥ 2.4), until the broker restarts.

Each broker reports and accepts only its own levels. A level is set on one logger; its descendants inherit it unless
they have a level of their own. The reported level is the effective one, own or inherited.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.base.grouping import grouped
from kctl.base.outcomes import ItemResult
from kctl.base.suggestions import did_you_mean
from kctl.errors import KctlError, NotFound, UsageError
from kctl.protocol.codes import ApiKey, ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")  # org.apache.kafka.common.config.LogLevelConfig
_LOGGER_RESOURCE = 8
_SET = 0

Levels = dict[str, str]


@dataclass(frozen=True, slots=True)
class BrokerLogger:
    """A logger with one level, and the brokers that have this level."""

    logger: str
    level: str
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoggerChange:
    """A change to a logger on one broker.

    before, after: the logger's level. result: would set, set, unchanged, failed; after a restore: put back, not put
    back, changed by others.
    """

    broker: int
    logger: str
    before: str
    after: str
    result: ItemResult
    error: str | None = None


def parse_levels(texts: Sequence[str]) -> Levels:
    """Parse "LOGGER=LEVEL" arguments. Raises UsageError."""
    levels: Levels = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{text!r} is not LOGGER=LEVEL", hint="for example kafka.server.KafkaApis=DEBUG")
        if level.strip().upper() not in LEVELS:
            raise UsageError(f"{level!r} is not a log level", hint=f"use one of {', '.join(LEVELS)}")
        if name.strip() in levels:
            raise UsageError(f"logger {name.strip()} is specified twice")
        levels[name.strip()] = level.strip().upper()
    return levels


def fetch_loggers(client: ClusterClient, brokers: Collection[int]) -> dict[int, Levels | KctlError]:
    """Return the level of every logger of each broker. Raises NotSupported for brokers before 2.4."""
    from kafka.protocol.admin import DescribeConfigsRequest

    client.require(ApiKey.OFFSET_DELETE, 0, "the log levels of brokers")  # introduced in the same release as KIP-412
    resource = DescribeConfigsRequest.DescribeConfigsResource
    responses = client.send_each(
        {
            node: DescribeConfigsRequest(
                resources=[resource(resource_type=_LOGGER_RESOURCE, resource_name=str(node), configuration_keys=None)],
                include_synonyms=False,
                min_version=1,
            )
            for node in sorted(brokers)
        }
    )
    return {node: _levels(node, response) for node, response in responses.items()}


def _levels(node: int, response: Any) -> Levels | KctlError:
    from kctl.protocol.client import error_for

    subject = f"loggers of broker {node}"
    if isinstance(response, KctlError):
        return response
    if not response.results:  # how a broker responds to a user without authorization
        return error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the broker did not return them", subject=subject)
    (row,) = response.results
    if row.error_code:
        return error_for(row.error_code, row.error_message, subject=subject)
    return {config.name: config.value for config in row.configs}


def by_logger(levels: Mapping[int, Levels]) -> list[BrokerLogger]:
    """Return one row per logger and level, by name. Pure."""
    rows = [(logger, level, node) for node in sorted(levels) for logger, level in levels[node].items()]
    return [
        BrokerLogger(logger, level, tuple(node for _, _, node in same))
        for (logger, level), same in sorted(grouped(rows, lambda row: row[:2]).items())
    ]


def plan_levels(current: Mapping[int, Levels], goals: Levels) -> list[LoggerChange]:
    """Return the planned change on each broker. Raises NotFound for a logger that a broker does not have. Pure."""
    for name in goals:
        missing_on = [node for node, levels in current.items() if name not in levels]
        if missing_on:
            existing = {each for levels in current.values() for each in levels}
            raise NotFound(
                f"logger {name} does not exist on broker {', '.join(map(str, missing_on))}",
                hint=did_you_mean(name, existing) or "list the loggers with `kctl broker loggers list`",
            )
    return [
        LoggerChange(
            node,
            name,
            current[node][name],
            level,
            ItemResult.UNCHANGED if current[node][name] == level else ItemResult.WOULD_SET,
        )
        for node in sorted(current)
        for name, level in goals.items()
    ]


def set_levels(client: ClusterClient, plan: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Set the planned levels, and read them back. Failures are in the rows."""
    to_set = [row for row in plan if row.result is ItemResult.WOULD_SET]
    failed = _alter(client, {(row.broker, row.logger): row.after for row in to_set})
    now = fetch_loggers(client, {row.broker for row in to_set}) if to_set else {}
    return [_read_back(row, failed, now) if row.result is ItemResult.WOULD_SET else row for row in plan]


def restore_levels(client: ClusterClient, changes: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Restore the previous levels of loggers that were or may have been set, unless others changed them since."""
    affected = [row for row in changes if row.result in {ItemResult.SET, ItemResult.FAILED}]
    now = fetch_loggers(client, {row.broker for row in affected}) if affected else {}
    rows = {(row.broker, row.logger): _before_restore(row, now[row.broker]) for row in affected}
    to_restore = {
        key: row.before
        for key, row in rows.items()
        if row.result in {ItemResult.SET, ItemResult.FAILED} and _has_new_level(row, now)
    }
    failed = _alter(client, to_restore)
    later = fetch_loggers(client, {node for node, _ in to_restore}) if to_restore else {}
    for key in to_restore:
        rows[key] = _after_restore(rows[key], failed.get(key), later[key[0]])
    return [rows.get((row.broker, row.logger), row) for row in changes]


def _has_new_level(row: LoggerChange, now: Mapping[int, Levels | KctlError]) -> bool:
    levels = now[row.broker]
    return not isinstance(levels, KctlError) and levels.get(row.logger) == row.after


def _before_restore(row: LoggerChange, now: Levels | KctlError) -> LoggerChange:
    if isinstance(now, KctlError):
        return dataclasses.replace(row, result=ItemResult.NOT_PUT_BACK, error=now.message)
    if now.get(row.logger) == row.before:  # e.g. the broker was restarted, or the level was never set
        return row if row.result is ItemResult.FAILED else dataclasses.replace(row, result=ItemResult.PUT_BACK)
    if now.get(row.logger) != row.after:
        return dataclasses.replace(
            row, result=ItemResult.CHANGED_BY_OTHERS, error=f"the level is now {now.get(row.logger)}"
        )
    return row


def _after_restore(row: LoggerChange, error: KctlError | None, later: Levels | KctlError) -> LoggerChange:
    if not isinstance(later, KctlError) and later.get(row.logger) == row.before:
        return dataclasses.replace(row, result=ItemResult.PUT_BACK)
    return dataclasses.replace(row, result=ItemResult.NOT_PUT_BACK, error=_reason(row, error, later))


def _read_back(
    row: LoggerChange, failed: Mapping[tuple[int, str], KctlError], now: Mapping[int, Levels | KctlError]
) -> LoggerChange:
    error, later = failed.get((row.broker, row.logger)), now[row.broker]
    if not isinstance(later, KctlError) and later.get(row.logger) == row.after:
        return dataclasses.replace(row, result=ItemResult.SET)
    return dataclasses.replace(row, result=ItemResult.FAILED, error=_reason(row, error, later))


def _reason(row: LoggerChange, error: KctlError | None, later: Levels | KctlError) -> str:
    if error is not None:
        return error.message
    return later.message if isinstance(later, KctlError) else f"the level is still {later.get(row.logger)}"


def _alter(client: ClusterClient, levels: Mapping[tuple[int, str], str]) -> dict[tuple[int, str], KctlError]:
    """Set levels. Return why each (broker, logger) failed; a broker sets all of its loggers or none."""
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    by_broker = grouped(levels, lambda key: key[0])
    responses = client.send_each(
        {
            node: IncrementalAlterConfigsRequest(
                resources=[
                    resource(
                        resource_type=_LOGGER_RESOURCE,
                        resource_name=str(node),
                        configs=[
                            resource.AlterableConfig(name=name, config_operation=_SET, value=levels[node, name])
                            for _, name in keys
                        ],
                    )
                ],
                validate_only=False,
            )
            for node, keys in by_broker.items()
        }
    ) if by_broker else {}  # fmt: skip
    errors = {node: _error(node, response) for node, response in responses.items()}
    return {key: error for node, keys in by_broker.items() for key in keys if (error := errors[node]) is not None}


def _error(node: int, response: Any) -> KctlError | None:
    from kctl.protocol.client import error_for

    if isinstance(response, KctlError):
        return response
    for row in response.responses:
        if row.error_code:
            return error_for(row.error_code, row.error_message, subject=f"loggers of broker {node}")
    return None
