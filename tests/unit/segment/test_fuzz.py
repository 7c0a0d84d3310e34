"""Damaged files of a log, 20,000 and more of them: whatever a file holds, no exception but kctl's own, no hang, and
what is undamaged is still told.

Small real and built files are damaged by hypothesis (tests/support/segment_mutations.py); in half of the cases the CRCs
are made right again, so that what parses payloads is reached. The inputs are the same in each run;
KCTL_FUZZ=N tries N times as many, others each time.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segment_files as build
from kctl.commands.terminal.output import jsonable
from kctl.segment.dump import fast_text, internal_topics, kafka_text_log
from kctl.segment.dump.decoders import TEXT, decoder, parser
from kctl.segment.dump.dump import DumpOptions, DumpRun, JsonLines
from kctl.segment.dump.kafka_text import KafkaText
from kctl.segment.dump.kafka_text_options import KafkaTextOptions
from kctl.segment.dump.query import Query
from kctl.segment.dump.rows import BatchRow, RecordRow
from kctl.segment.format.checkpoints import NAMES, BadCheckpoint, read_checkpoint
from kctl.segment.format.release import Release
from segment_fuzzing import (
    LIMIT,
    NAME,
    Scratch,
    built_log,
    damaged,
    first_batches,
    in_memory,
    in_time,
    inputs,
    starts,
    whole_batches,
)
from segment_mutations import Mutation, apply, mutations

DATA = Path(__file__).parents[2] / "data" / "segments"
DEEP = KafkaTextOptions(deep=True, parser=TEXT, plain=True, max_message_bytes=LIMIT)


LOGS = {f"built-{codec}": built_log(codec) for codec in build.CODECS} | {
    name: first_batches(DATA / name / f"{NAME}.log", count)
    for name, count in (
        ("v0/none", 4), ("v0/snappy", 1), ("v1/none", 4), ("v1/lz4", 1), ("v1/mixed", 3), ("v2/gzip", 1),
        ("v2/rdk-snappy", 1), ("v2/zstd", 1), ("v2/txn", 5),
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    made = Scratch(tmp_path_factory.mktemp("fuzz"))
    with in_memory():
        yield made
    made.close()


# --- logs -----------------------------------------------------------------------------------------------------------


def _text(path: Path, options: KafkaTextOptions) -> tuple[bytes, list[str], list[str]]:
    """What is printed, damage, mismatches."""
    out = io.BytesIO()
    text = KafkaText(options, out.write)
    text.dump(str(path))
    return (
        out.getvalue(),
        [f"{row.position} {row.message}" for row in text.findings],
        list(text.mismatches()),
    )


def _plain_text(path: Path, options: KafkaTextOptions) -> tuple[bytes, list[str], list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_text_log, "records_text", lambda *_args, **_settings: None)
        return _text(path, options)


def _rows(path: Path, **options: Any) -> list[Any]:
    return list(DumpRun([path], DumpOptions(max_message_bytes=LIMIT, **options)).rows())


def _records(path: Path, **options: Any) -> list[RecordRow]:
    """Those that are shown; as JSON Lines, many at once, they are the same."""
    rows = _rows(path, records=True, **options)
    run = DumpRun([path], DumpOptions(max_message_bytes=LIMIT, records=True, json_lines=True, **options))
    lines: list[bytes] = []
    for row in run.rows_and_lines():
        lines += row.text.splitlines() if isinstance(row, JsonLines) else [json.dumps(jsonable(row)).encode()]
    assert [json.loads(line) for line in lines] == jsonable(rows)
    return [row for row in rows if isinstance(row, RecordRow)]


def _check_records(path: Path, undamaged: set[int]) -> None:
    found = {row.position: row.valid for row in _records(path)}
    assert all(found[position] for position in undamaged)


def _check_batches(path: Path, undamaged: set[int], whole: list[bytes], changed: bytes) -> None:
    """Also behind damage: whole batches are found wherever they are, unless they lie within what claims to be one."""
    found = {row.position: row for row in _rows(path) if isinstance(row, BatchRow)}
    assert undamaged <= {row.position for row in found.values() if row.valid}
    for content in whole:
        at = changed.find(content)
        if at >= 0 and not any(row.position < at < row.position + row.size_bytes for row in found.values()):
            assert found[at].valid


@pytest.mark.parametrize("name", LOGS)
def test_logs(scratch: Scratch, name: str) -> None:
    original = LOGS[name]
    begins, whole = starts(original), whole_batches(original)
    prefixes = {end: _text(scratch(f"{NAME}.log", original[:end]), DEEP) for end in [*begins, len(original)]}

    @inputs(600 if name.startswith("built") else 350)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        changed = damaged(original, changes, fix=fix)
        good = max(end for end in prefixes if changed.startswith(original[:end]))
        with in_time():
            path = scratch(f"{NAME}.log", changed)
            printed = _text(path, DEEP)
            assert printed == _plain_text(path, DEEP)
            assert printed[0].startswith(prefixes[good][0])
            undamaged = {start for start in begins if start < good}
            _check_records(path, undamaged)
            _check_batches(path, undamaged, whole, changed)

    check()


def test_both_ways_are_compared(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast way is taken for these logs at all."""
    taken = []

    def records_text(*args: Any, **chosen: Any) -> Any:
        taken.append(fast_text.records_text(*args, **chosen))
        return taken[-1]

    monkeypatch.setattr(kafka_text_log, "records_text", records_text)
    for name, data in LOGS.items():
        taken.clear()
        _text(scratch(f"{NAME}.log", data), DEEP)
        assert any(taken) == name.startswith(("built", "v2/txn", "v2/rdk")), name


# --- keys and values through decoders, filters ----------------------------------------------------------------------

PARSERS = {
    "offsets": ("internal/kafka-2.8-consumer_offsets", internal_topics.TEXTS["offsets"](Release.KAFKA_3_9)),
    "transactions": ("internal/zk-3.9-transaction_state", internal_topics.TEXTS["transaction_log"](Release.KAFKA_3_9)),
    "transactions of 4.4": (
        "internal/zk-3.9-transaction_state",
        internal_topics.TEXTS["transaction_log"](Release.KAFKA_4_4),
    ),
    "metadata": ("internal/kraft-3.9-cluster_metadata", internal_topics.TEXTS["cluster_metadata"](Release.KAFKA_4_4)),
    "remote": ("internal/kraft-3.9-cluster_metadata", internal_topics.TEXTS["remote_log_metadata"](Release.KAFKA_4_4)),
    "long and double": ("v2/txn", parser(decoder("long"), decoder("double"))),
}


@pytest.mark.parametrize("name", PARSERS)
def test_contents(scratch: Scratch, name: str) -> None:
    """CRCs are always right: what is damaged is what the decoders see."""
    folder, show = PARSERS[name]
    original = first_batches(DATA / folder / f"{NAME}.log", 6)
    options = KafkaTextOptions(deep=True, parser=show, max_message_bytes=LIMIT)

    @inputs(500)
    @given(mutations())
    def check(changes: list[Mutation]) -> None:
        changed = damaged(original, changes, fix=True)
        with in_time():
            path = scratch(f"{NAME}.log", changed)
            assert _text(path, options)[0].startswith(f"Dumping {path}\n".encode())

    check()


def _some_query(numbers: bytes) -> Query:
    first, last, since, producer, bits = struct.unpack(">BBHBB", numbers)
    return Query(
        first=first % 16 if bits & 1 else None,
        last=first % 16 + last % 16 if bits & 2 else None,
        since_ms=build.BASE_TIMESTAMP + since % 8 if bits & 4 else None,
        until_ms=build.BASE_TIMESTAMP + since % 8 + 4 if bits & 8 else None,
        producer_id=7 if bits & 16 else None,
        transactional=bool(producer & 1) if bits & 32 else None,
    )


def _wanted(row: RecordRow, query: Query) -> bool:
    """The same filter over what was shown: without any look at headers of batches."""
    producer = query.producer_id in {None, row.producer_id}
    kind = query.transactional in {None, row.transactional}
    behind = query.first is None or query.first <= row.offset
    return producer and kind and behind and (query.last is None or row.offset <= query.last)


def test_filters(scratch: Scratch) -> None:
    """What a filter shows is what is left of all records; headers that lie may hide their records, never add any."""
    original = built_log("none")

    @inputs(600)
    @given(mutations(), st.binary(min_size=6, max_size=6), st.booleans())
    def check(changes: list[Mutation], numbers: bytes, limited: bool) -> None:
        query, limit = _some_query(numbers), 2 if limited else None
        with in_time():
            path = scratch(f"{NAME}.log", damaged(original, changes, fix=True))
            everything = _records(path)
            shown = _records(path, query=query, limit=limit)
        left = iter(everything)
        assert all(row in left for row in shown)  # in their order
        assert all(_wanted(row, query) for row in shown)
        assert limit is None or len(shown) <= limit

    check()


# --- what lies beside a log -----------------------------------------------------------------------------------------

_LOG = built_log("none")
_STARTS = starts(_LOG)
COMPANIONS = {
    ".index": build.offset_index([(9, _STARTS[1]), (12, _STARTS[3]), (15, _STARTS[4])]),
    ".timeindex": build.time_index([(build.BASE_TIMESTAMP + number, number) for number in (1, 9, 12)]),
    ".txnindex": build.transaction_index([(7, 10, 12, 13), (8, 11, 14, 15)]),
    ".snapshot": build.producer_snapshot([(7, 0, 1, 11, 1, build.BASE_TIMESTAMP, 0, -1), (8, 1, -1, -1, 0, 5, 2, 14)]),
}


def _right_snapshot(data: bytes) -> bytes:
    from crc32c import crc32c

    return data if len(data) < 6 else data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]


@pytest.mark.parametrize("option", ["", "verify", "sanity"])
@pytest.mark.parametrize("suffix", COMPANIONS)
def test_companions(scratch: Scratch, suffix: str, option: str) -> None:
    original = COMPANIONS[suffix]
    chosen = KafkaTextOptions(max_message_bytes=LIMIT, verify_only=option == "verify", sanity_only=option == "sanity")
    scratch(f"{NAME}.log", _LOG)
    for other, data in COMPANIONS.items():
        scratch(f"{NAME}{other}", data)

    @inputs(500)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        changed = apply(original, changes, ())
        path = scratch(f"{NAME}{suffix}", _right_snapshot(changed) if fix and suffix == ".snapshot" else changed)
        with in_time():
            out, _, _ = _text(path, chosen)
        assert out.startswith(f"Dumping {path}\n".encode())
        assert len(out.splitlines()) <= len(changed) // 8 + 2

    check()


def test_logs_that_indexes_do_not_fit(scratch: Scratch) -> None:
    for suffix, data in COMPANIONS.items():
        scratch(f"{NAME}{suffix}", data)

    @inputs(500)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        log = scratch(f"{NAME}.log", damaged(_LOG, changes, fix=fix))
        with in_time():
            for suffix in (".index", ".timeindex"):
                out, _, _ = _text(log.with_suffix(suffix), KafkaTextOptions(max_message_bytes=LIMIT))
                assert len(out.splitlines()) <= 4

    check()


def test_snapshots_of_kraft(scratch: Scratch) -> None:
    name = "00000000000000000031-0000000001.checkpoint"
    original = (DATA / "internal/kraft-3.9-cluster_metadata" / name).read_bytes()
    parse = internal_topics.TEXTS["cluster_metadata"](Release.KAFKA_4_4)
    options = KafkaTextOptions(Release.KAFKA_4_4, deep=True, parser=parse, max_message_bytes=LIMIT)

    @inputs(300)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        path = scratch(name, damaged(original, changes, fix=fix))
        with in_time():
            assert _text(path, options)[0].startswith(f"Dumping {path}\nSnapshot end offset: 31, epoch: 1\n".encode())

    check()


TEXTS = {
    "leader-epoch-checkpoint": build.leader_epochs([(0, 0), (3, 17), (4, 90)]),
    "replication-offset-checkpoint": build.offset_checkpoint({("orders", 0): 17, ("a.b-c_d", 12): 2**40}),
    "meta.properties": b"#Sat\nversion=0\nbroker.id=1\ncluster.id=abc\n",
    "partition.metadata": b"version: 0\ntopic_id: 4xqNeCGTRHqDIUEbnWZeRQ",
    "quorum-state": b'{"leaderId":1,"leaderEpoch":9,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"data_version":1}',
}


@pytest.mark.parametrize("name", TEXTS)
def test_checkpoint_files(name: str) -> None:
    assert name in NAMES

    @inputs(500)
    @given(mutations())
    def check(changes: list[Mutation]) -> None:
        changed = apply(TEXTS[name], changes, ())
        with in_time():
            try:
                rows, line = read_checkpoint(Path(name), changed), 1
            except BadCheckpoint as exc:
                rows, line = [], exc.line
        assert 1 <= line <= changed.count(b"\n") + 2
        assert len(rows) <= changed.count(b"," if name == "quorum-state" else b"\n") + 1
        assert json.loads(json.dumps(jsonable(rows))) == jsonable(rows)

    check()
