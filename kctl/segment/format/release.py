"""The releases of Kafka whose message definitions and tool output kctl has."""

from __future__ import annotations

from enum import Enum


class Release(str, Enum):
    """A release of Kafka with its own message definitions, and its own text of DumpLogSegments."""

    KAFKA_3_9 = "3.9"
    KAFKA_4_4 = "4.4"
