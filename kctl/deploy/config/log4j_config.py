"""log4j.properties of a broker, controller or ZooKeeper (Kafka 3.x, ZooKeeper 3.8), log4j2.properties for 4.x. Pure.

The process rolls its own log, because a redirected stdout would grow forever. Times are UTC (`-Duser.timezone=UTC`), in
Kafka's pattern, so that tools for Kafka's logs can read them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kctl.base.properties import property_sections
from kctl.deploy.layout import ClusterSpec, Node, ZooKeeperNode, is_kafka_4

Section = tuple[str, list[tuple[str, str]]]
_PATTERN = "[%d] %p %m (%c)%n"
_FILE_COMMENT = "One file, rolled at 10 MB; five old files are retained"
_QUIET_COMMENT = "Verbose and rarely useful"


def render_log4j(spec: ClusterSpec, node: Node) -> str:
    """Return the text of the node's log4j.properties, or of log4j2.properties for Kafka 4.x."""
    header = f"Log of {node.name} of cluster {spec.name}, times in UTC.\nWritten once by kctl; may be edited."
    quiet = {"org.apache.zookeeper": "WARN", "state.change.logger": "WARN"}
    if isinstance(node, ZooKeeperNode):
        quiet = {"org.apache.zookeeper.server.NIOServerCnxn": "WARN"}
    elif spec.uses_kraft:
        quiet = {"state.change.logger": "WARN"}
    sections = _log4j2(spec, node, quiet) if is_kafka_4(spec.kafka_version) else _log4j(spec, node, quiet)
    return property_sections(header, sections)


def _log4j(spec: ClusterSpec, node: Node, quiet: Mapping[str, str]) -> list[Section]:
    file = [
        ("log4j.rootLogger", "INFO, file"),
        ("log4j.appender.file", "org.apache.log4j.RollingFileAppender"),
        ("log4j.appender.file.File", str(spec.log_path(node))),
        ("log4j.appender.file.MaxFileSize", "10MB"),
        ("log4j.appender.file.MaxBackupIndex", "5"),
        ("log4j.appender.file.layout", "org.apache.log4j.PatternLayout"),
        ("log4j.appender.file.layout.ConversionPattern", _PATTERN),
    ]
    return [(_FILE_COMMENT, file), (_QUIET_COMMENT, [(f"log4j.logger.{name}", level) for name, level in quiet.items()])]


def _log4j2(spec: ClusterSpec, node: Node, quiet: Mapping[str, str]) -> list[Section]:
    path = str(spec.log_path(node))
    file = [
        ("rootLogger.level", "info"),
        ("rootLogger.appenderRef.file.ref", "file"),
        ("appender.file.type", "RollingFile"),
        ("appender.file.name", "file"),
        ("appender.file.fileName", path),
        ("appender.file.filePattern", f"{path}.%i"),
        ("appender.file.layout.type", "PatternLayout"),
        ("appender.file.layout.pattern", _PATTERN),
        ("appender.file.policies.type", "Policies"),
        ("appender.file.policies.size.type", "SizeBasedTriggeringPolicy"),
        ("appender.file.policies.size.size", "10MB"),
        ("appender.file.strategy.type", "DefaultRolloverStrategy"),
        ("appender.file.strategy.fileIndex", "min"),  # .1 is the newest old file, as with log4j
        ("appender.file.strategy.max", "5"),
    ]
    loggers = [
        entry
        for n, (name, level) in enumerate(quiet.items(), start=1)
        for entry in ((f"logger.quiet{n}.name", name), (f"logger.quiet{n}.level", level.lower()))
    ]
    return [(_FILE_COMMENT, file), (_QUIET_COMMENT, loggers)]
