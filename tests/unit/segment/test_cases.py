"""Every case that was recorded of Kafka's own DumpLogSegments 3.9.2 and 4.4.0, byte for byte.

See tests/data/segments/README.md, and tests/support/java_dumps.py for 4.4.0.
"""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from java_dumps import load_cases
from kctl.segment.dump import internal_topics
from kctl.segment.dump.decoders import decoder, parser
from kctl.segment.dump.kafka_text import KafkaText
from kctl.segment.dump.kafka_text_options import KafkaTextOptions
from kctl.segment.format.release import Release

DATA = Path(__file__).parents[2] / "data" / "segments"
CASES: list[dict[str, Any]] = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))
FLAGS = {
    "--deep-iteration": "deep",
    "--skip-record-metadata": "skip_record_metadata",
    "--verify-index-only": "verify_only",
    "--index-sanity-check": "sanity_only",
}
NUMBERS = {"--max-bytes": "max_bytes", "--max-message-size": "max_message_bytes"}
INTERNAL = {f"--{name.replace('_', '-')}-decoder": text for name, text in internal_topics.TEXTS.items()}


def _options(args: list[str], release: Release) -> tuple[KafkaTextOptions, list[str]]:
    chosen: dict[str, Any] = {"release": release}
    decoders = {"--key-decoder-class": "string", "--value-decoder-class": "string"}
    files: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--files":
            files = next(words).split(",")
        elif word in FLAGS:
            chosen[FLAGS[word]] = True
        elif word in NUMBERS:
            chosen[NUMBERS[word]] = int(next(words))
        elif word in INTERNAL:
            chosen |= {"parser": INTERNAL[word](release), "deep": True}
        else:
            if word != "--print-data-log":
                decoders[word] = next(words)
            key, value = (decoder(name) for name in decoders.values())
            chosen |= {"parser": parser(key, value), "deep": True}
    return KafkaTextOptions(**chosen), files


def _expected(name: str | None) -> bytes:
    return (DATA / name).read_bytes().replace(b"@GOLDEN@", os.fsencode(DATA)) if name else b""


def _same_identities(text: bytes) -> bytes:
    """The JVM's tool prints byte arrays as "[B@" and a number that is another one in each run."""
    return re.sub(rb"\[B@[0-9a-f]+", b"[B@", text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case["args"])[-120:])
def test_case(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    text, printed = _printed(case["args"], Release.KAFKA_3_9)
    expected = _same_identities(_expected(case["stdout"]))
    if case["exception"]:  # there the JVM's tool ended; here it goes on behind the damage
        assert printed.startswith(expected)
        assert text.findings
        return
    assert printed == expected
    assert _stderr(text) == _expected(case["stderr"])


def _printed(args: list[str], release: Release) -> tuple[KafkaText, bytes]:
    options, files = _options(args, release)
    out = io.BytesIO()
    text = KafkaText(options, out.write)
    for name in files:
        text.dump(name)
    return text, _same_identities(out.getvalue())


def _stderr(text: KafkaText) -> bytes:
    lines = [*text.mismatches(), *(f"Ignoring unknown file {name}" for name in text.ignored)]
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("case", load_cases("4.4"), ids=lambda case: " ".join(case["args"])[-120:])
def test_case_of_4_4(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    text, printed = _printed(case["args"], Release.KAFKA_4_4)
    expected = _same_identities(case["stdout"])
    if case["exception"]:
        assert printed.startswith(expected)
        # For each entry of a .timeindex, the tool reads the whole log, and ends at the zeros behind its last batch.
        assert text.findings or "zero-tail" in case["args"][-1]
        return
    assert printed == expected
    assert _stderr(text) == case["stderr"].replace(b"@GOLDEN@", os.fsencode(DATA))
