"""log4j.properties of a broker or ZooKeeper (reload4j: Kafka 3.x, ZooKeeper 3.8). Pure.

The process rolls its own log, because a redirected stdout would grow forever. Times are UTC (`-Duser.timezone=UTC`), in
Kafka's pattern, so that tools for Kafka's logs can read them.
"""

from __future__ import annotations

from kctl.base.properties import property_sections
from kctl.deploy.layout import BrokerNode, ClusterSpec, Node


def render_log4j(spec: ClusterSpec, node: Node) -> str:
    """Return the text of log4j.properties."""
    sections = [
        (
            "One file, rolled at 10 MB; five old files are retained",
            [
                ("log4j.rootLogger", "INFO, file"),
                ("log4j.appender.file", "org.apache.log4j.RollingFileAppender"),
                ("log4j.appender.file.File", str(spec.log_path(node))),
                ("log4j.appender.file.MaxFileSize", "10MB"),
                ("log4j.appender.file.MaxBackupIndex", "5"),
                ("log4j.appender.file.layout", "org.apache.log4j.PatternLayout"),
                ("log4j.appender.file.layout.ConversionPattern", "[%d] %p %m (%c)%n"),
            ],
        ),
    ]
    quiet = [("log4j.logger.org.apache.zookeeper.server.NIOServerCnxn", "WARN")]
    if isinstance(node, BrokerNode):
        quiet = [("log4j.logger.org.apache.zookeeper", "WARN"), ("log4j.logger.state.change.logger", "WARN")]
    sections.append(("Verbose and rarely useful", quiet))
    header = f"Log of {node.name} of cluster {spec.name}, times in UTC.\nWritten once by kctl; may be edited."
    return property_sections(header, sections)
