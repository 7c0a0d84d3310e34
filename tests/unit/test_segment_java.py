"""Files in many forms against what Kafka's DumpLogSegments 3.9.2 prints for them (tests/support/java_dumps.py)."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from java_dumps import SOURCES, Dump, load
from kctl.segment import decoders, internal_topics
from kctl.segment.kafka_text import KafkaText
from kctl.segment.kafka_text_options import KafkaTextOptions

DUMPS = [pytest.param(dump, id=f"{name}: {dump.form.name}") for name in SOURCES for dump in load(name)]


def _options(arguments: tuple[str, ...]) -> KafkaTextOptions:
    if "--print-data-log" in arguments:
        return KafkaTextOptions(deep=True, parser=decoders.TEXT, plain=True)
    for argument in arguments:
        name = argument.removeprefix("--").removesuffix("-decoder").replace("-", "_")
        if name in internal_topics.TEXTS:
            return KafkaTextOptions(deep=True, parser=internal_topics.TEXTS[name])
    return KafkaTextOptions(deep="--deep-iteration" in arguments)


@pytest.mark.parametrize("dump", DUMPS)
def test_text(dump: Dump, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(dump.form.file).write_bytes(dump.form.data)
    out = io.BytesIO()
    text = KafkaText(_options(dump.form.arguments), out.write)
    text.dump(dump.form.file)
    if dump.exception is None:
        assert out.getvalue().decode(errors="replace") == dump.stdout.decode(errors="replace")
        assert not text.unreadable
    else:  # there Kafka's tool ended; here it goes on behind the damage
        printed = out.getvalue()
        assert printed[: len(dump.stdout)].decode(errors="replace") == dump.stdout.decode(errors="replace")
        assert text.found_count
