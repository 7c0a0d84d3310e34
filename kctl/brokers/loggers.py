"""The log levels of running brokers, read and set (KIP-412, brokers ≥ 2.4). They last until the broker restarts.

Only the broker itself tells and takes them. It sets a logger's own level: loggers below it follow, unless they have
one of their own. What is told is the level in effect, own or not.
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
from kctl.protocol.codes import ApiKey

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")  # org.apache.kafka.common.config.LogLevelConfig
_LOGGER_RESOURCE = 8
_SET = 0

Levels = dict[str, str]


@dataclass(frozen=True, slots=True)
class BrokerLogger:
    """The level of a logger, and the brokers that have it so."""

    logger: str
    level: str
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoggerChange:
    """A logger of one broker. before, after: its level; result: «would set», «set», «unchanged», «failed», and with a
    way back «put back», «not put back», «changed by others».
    """

    broker: int
    logger: str
    before: str
    after: str
    result: ItemResult
    error: str | None = None


def parse_levels(texts: Sequence[str]) -> Levels:
    """«LOGGER=LEVEL» by logger. Raises UsageError."""
    found: Levels = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{text!r} is not LOGGER=LEVEL", hint="for example kafka.server.KafkaApis=DEBUG")
        if level.strip().upper() not in LEVELS:
            raise UsageError(f"{level!r} is not a log level", hint=f"use one of {', '.join(LEVELS)}")
        if name.strip() in found:
            raise UsageError(f"logger {name.strip()} is named twice")
        found[name.strip()] = level.strip().upper()
    return found


def fetch_loggers(client: ClusterClient, brokers: Collection[int]) -> dict[int, Levels | KctlError]:
    """Every logger that each broker has, with its level. Raises NotSupported for brokers before 2.4."""
    from kafka.protocol.admin import DescribeConfigsRequest

    client.require(ApiKey.OFFSET_DELETE, 0, "the log levels of brokers")  # of the same release as KIP-412
    resource = DescribeConfigsRequest.DescribeConfigsResource
    answers = client.send_each(
        {
            node: DescribeConfigsRequest(
                resources=[resource(resource_type=_LOGGER_RESOURCE, resource_name=str(node), configuration_keys=None)],
                include_synonyms=False,
                min_version=1,
            )
            for node in sorted(brokers)
        }
    )
    return {node: _levels(node, answer) for node, answer in answers.items()}


def _levels(node: int, answer: Any) -> Levels | KctlError:
    from kctl.protocol.client import error_for

    subject = f"loggers of broker {node}"
    if isinstance(answer, KctlError):
        return answer
    if not answer.results:  # silently, when they may not be described
        return error_for(31, "they were not described", subject=subject)
    (row,) = answer.results
    if row.error_code:
        return error_for(row.error_code, row.error_message, subject=subject)
    return {config.name: config.value for config in row.configs}


def by_logger(levels: Mapping[int, Levels]) -> list[BrokerLogger]:
    """A row for each logger and level, by name. Pure."""
    rows = [(logger, level, node) for node in sorted(levels) for logger, level in levels[node].items()]
    return [
        BrokerLogger(logger, level, tuple(node for _, _, node in same))
        for (logger, level), same in sorted(grouped(rows, lambda row: row[:2]).items())
    ]


def plan_levels(current: Mapping[int, Levels], wanted: Levels) -> list[LoggerChange]:
    """What would be set on each broker. Raises NotFound for a logger that one of them does not have. Pure."""
    for name in wanted:
        lacking = [node for node, levels in current.items() if name not in levels]
        if lacking:
            known = {each for levels in current.values() for each in levels}
            raise NotFound(
                f"there is no logger {name} on broker {', '.join(map(str, lacking))}",
                hint=did_you_mean(name, known) or "`kctl broker loggers list` shows what there is",
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
        for name, level in wanted.items()
    ]


def set_levels(client: ClusterClient, plan: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Set what the plan would set, and read it back. A failure is in its row."""
    todo = [row for row in plan if row.result is ItemResult.WOULD_SET]
    failed = _alter(client, {(row.broker, row.logger): row.after for row in todo})
    now = fetch_loggers(client, {row.broker for row in todo}) if todo else {}
    return [_seen(row, failed, now) if row.result is ItemResult.WOULD_SET else row for row in plan]


def put_back(client: ClusterClient, done: Sequence[LoggerChange]) -> list[LoggerChange]:
    """Give the loggers that were set, or may have been, their levels from before, unless others have set them since."""
    mine = [row for row in done if row.result in {ItemResult.SET, ItemResult.FAILED}]
    now = fetch_loggers(client, {row.broker for row in mine}) if mine else {}
    rows = {(row.broker, row.logger): _before_return(row, now[row.broker]) for row in mine}
    todo = {
        key: row.before
        for key, row in rows.items()
        if row.result in {ItemResult.SET, ItemResult.FAILED} and _to_do(row, now)
    }
    failed = _alter(client, todo)
    then = fetch_loggers(client, {node for node, _ in todo}) if todo else {}
    for key in todo:
        rows[key] = _after_return(rows[key], failed.get(key), then[key[0]])
    return [rows.get((row.broker, row.logger), row) for row in done]


def _to_do(row: LoggerChange, now: Mapping[int, Levels | KctlError]) -> bool:
    found = now[row.broker]
    return not isinstance(found, KctlError) and found.get(row.logger) == row.after


def _before_return(row: LoggerChange, now: Levels | KctlError) -> LoggerChange:
    if isinstance(now, KctlError):
        return dataclasses.replace(row, result=ItemResult.NOT_PUT_BACK, error=now.message)
    if now.get(row.logger) == row.before:  # a broker that was restarted, say; or it had not been set
        return row if row.result is ItemResult.FAILED else dataclasses.replace(row, result=ItemResult.PUT_BACK)
    if now.get(row.logger) != row.after:
        return dataclasses.replace(row, result=ItemResult.CHANGED_BY_OTHERS, error=f"it is {now.get(row.logger)} now")
    return row


def _after_return(row: LoggerChange, error: KctlError | None, then: Levels | KctlError) -> LoggerChange:
    if not isinstance(then, KctlError) and then.get(row.logger) == row.before:
        return dataclasses.replace(row, result=ItemResult.PUT_BACK)
    return dataclasses.replace(row, result=ItemResult.NOT_PUT_BACK, error=_why(row, error, then))


def _seen(
    row: LoggerChange, failed: Mapping[tuple[int, str], KctlError], now: Mapping[int, Levels | KctlError]
) -> LoggerChange:
    error, then = failed.get((row.broker, row.logger)), now[row.broker]
    if not isinstance(then, KctlError) and then.get(row.logger) == row.after:
        return dataclasses.replace(row, result=ItemResult.SET)
    return dataclasses.replace(row, result=ItemResult.FAILED, error=_why(row, error, then))


def _why(row: LoggerChange, error: KctlError | None, then: Levels | KctlError) -> str:
    if error is not None:
        return error.message
    return then.message if isinstance(then, KctlError) else f"it is {then.get(row.logger)} all the same"


def _alter(client: ClusterClient, levels: Mapping[tuple[int, str], str]) -> dict[tuple[int, str], KctlError]:
    """(broker, logger) → why it was not set; nothing for what was. A broker sets all of its loggers, or none."""
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    by_broker = grouped(levels, lambda key: key[0])
    answers = client.send_each(
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
    errors = {node: _error(node, answer) for node, answer in answers.items()}
    return {key: error for node, keys in by_broker.items() for key in keys if (error := errors[node]) is not None}


def _error(node: int, answer: Any) -> KctlError | None:
    from kctl.protocol.client import error_for

    if isinstance(answer, KctlError):
        return answer
    for row in answer.responses:
        if row.error_code:
            return error_for(row.error_code, row.error_message, subject=f"loggers of broker {node}")
    return None
