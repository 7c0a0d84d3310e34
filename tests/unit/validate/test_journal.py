"""The journals of a validation: what is written is read again, whatever became of the process that wrote."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.errors import InvalidFile, KctlError, NotFound, OperationFailed
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.validate.workload import records
from kctl.validate.workload.entries import (
    ACKED,
    ENDED,
    FAILED,
    READ,
    SENT,
    SIZE,
    STOPPING,
    UNKNOWN,
    Entry,
    decode,
    encode,
)
from kctl.validate.workload.history import delivered_of, sent_of
from kctl.validate.workload.read_journal import JournalReader, read_entries
from kctl.validate.workload.settings import ConsumerSettings, ProducerSettings, take_task, write_task
from kctl.validate.workload.write_journal import JournalWriter

RUN = "00ff00ff00ff00ff"


def written(path: Path, *entries: tuple[int, int, int, int, int]) -> Path:
    with JournalWriter(path, RUN) as journal:
        for entry in entries:
            journal.add(*entry)
        journal.write()
    return path


SOME = ((SENT, 0, 3, 0, -1), (SENT, 1, 2, 0, -1), (ACKED, 0, 2, 0, 10), (FAILED, 1, 1, 0, -1), (UNKNOWN, 1, 1, 1, -1))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    before = time.monotonic_ns()
    path = written(tmp_path / "j", *SOME, (STOPPING, 0, 0, -1, -1), (ENDED, 0, 0, -1, -1))
    assert [tuple(entry[:5]) for entry in read_entries(path)][:5] == list(SOME)
    reader = JournalReader(path)
    next(reader.read())
    header = reader.header
    assert header is not None
    assert header.run == RUN
    assert before <= header.monotonic_ns <= time.monotonic_ns()
    assert abs(header.wall_ns / 1e9 - time.time()) < 60
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    sent = sent_of(read_entries(path))
    assert bytes(sent.partitions[0].states) == bytes((ACKED, ACKED, SENT))
    assert sent.partitions[0].offsets.tolist() == [10, 11, -1]
    assert bytes(sent.partitions[1].states) == bytes((FAILED, UNKNOWN))
    assert sent.partitions[0].ack_counts.tolist() == [2]
    assert sent.ended
    assert sent.stop_ns > sent.partitions[0].first_ns > before


def test_a_journal_is_not_written_over(tmp_path: Path) -> None:
    written(tmp_path / "j")
    with pytest.raises(OperationFailed, match="cannot write the journal"):
        JournalWriter(tmp_path / "j", RUN)


@pytest.mark.parametrize("cut", range(1, SIZE))
def test_a_torn_tail_says_nothing(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "j", *SOME)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    assert len(list(read_entries(path))) == len(SOME) - 1
    assert not sent_of(read_entries(path)).ended


def test_zeros_and_a_damaged_last_entry_are_a_torn_tail(tmp_path: Path) -> None:
    path = written(tmp_path / "j", *SOME)
    data = path.read_bytes()
    path.write_bytes(data + bytes(100 * SIZE + 7))
    assert len(list(read_entries(path))) == len(SOME)
    path.write_bytes(data[:-1] + b"?")
    assert len(list(read_entries(path))) == len(SOME) - 1


@pytest.mark.parametrize("at", [SIZE, SIZE + 5, 2 * SIZE + 8, 3 * SIZE + 39])
def test_damage_in_the_middle_is_told(tmp_path: Path, at: int) -> None:
    path = written(tmp_path / "j", *SOME)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InvalidFile, match=f"damaged at byte {at - at % SIZE}"):
        list(read_entries(path))


def test_what_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        list(read_entries(tmp_path / "none"))
    (tmp_path / "text").write_text("something else, and longer than a header would be\n" * 3)
    with pytest.raises(InvalidFile, match="not a validation journal"):
        list(read_entries(tmp_path / "text"))
    (tmp_path / "empty").touch()
    assert list(read_entries(tmp_path / "empty")) == []


def test_a_reader_follows_a_journal_that_grows(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "j", RUN) as journal:
        reader = JournalReader(tmp_path / "j")
        assert list(reader.read()) == []
        journal.add(*SOME[0])
        assert list(reader.read()) == []  # only in memory yet
        journal.write()
        assert [entry.records for entry in reader.read()] == [3]
        assert list(reader.read()) == []
        with (tmp_path / "j").open("ab") as other:
            other.write(encode(Entry(*SOME[1], at_ns=1))[:20])
        assert list(reader.read()) == []


def test_a_long_journal_is_read_piece_by_piece(tmp_path: Path) -> None:
    path = written(tmp_path / "j", *((SENT, 0, 1, number, -1) for number in range(5000)))
    assert sent_of(read_entries(path)).partitions[0].count == 5000


@pytest.mark.parametrize(
    "entries",
    [
        [(SENT, 0, 1, 1, -1)],  # not the next one
        [(SENT, 0, 1, 0, -1), (SENT, 0, 1, 0, -1)],
        [(ACKED, 0, 1, 0, 0)],  # never sent
        [(SENT, 0, 2, 0, -1), (ACKED, 0, 3, 0, 0)],
        [(SENT, 0, 2, 0, -1), (ACKED, 0, 1, 0, 0), (FAILED, 0, 2, 0, -1)],  # a second outcome
        [(READ, 0, 1, 0, 0)],  # a consumer's
    ],
)
def test_a_producers_journal_that_makes_no_sense(entries: list[tuple[int, int, int, int, int]]) -> None:
    with pytest.raises(InvalidFile):
        sent_of(Entry(*entry, at_ns=1) for entry in entries)


def test_a_consumers_journal(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "j", RUN) as journal:
        journal.add_read(0, [3, 4, 5, 7, 8, 9, 10, 11], [0, 1, 5, 6, -1, -1, 0, 1])
        journal.add_read(1, [], [])
        journal.add(ENDED)
        journal.write()
    entries = list(read_entries(tmp_path / "j"))
    assert [(e.records, e.sequence, e.offset) for e in entries[:-1]] == [
        (2, 0, 3), (1, 5, 5), (1, 6, 7), (2, -1, 8), (2, 0, 10),
    ]  # fmt: skip
    found = delivered_of(entries)
    assert found.ended
    assert found.partitions[0].offsets.tolist() == [3, 4, 5, 7, 8, 9, 10, 11]
    assert found.partitions[0].sequences.tolist() == [0, 1, 5, 6, -1, -1, 0, 1]
    with pytest.raises(InvalidFile, match="not a consumer journal"):
        delivered_of([Entry(SENT, 0, 1, 0, -1, 1)])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 12)), max_size=40))
def test_what_was_delivered_is_what_the_journal_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("j") / "j"
    with JournalWriter(path, RUN) as journal:
        journal.add_read(2, [row[0] for row in rows], [row[1] for row in rows])
        journal.write()
    partition = delivered_of(read_entries(path)).partitions.get(2)
    found = [] if partition is None else list(zip(partition.offsets, partition.sequences, strict=True))
    assert found == rows


def test_entries_that_are_none() -> None:
    entry = Entry(ACKED, 7, 3, 1 << 40, 1 << 41, 1 << 60)
    assert decode(encode(entry)) == entry
    assert decode(encode(entry._replace(kind=99))) is None
    assert decode(encode(entry._replace(records=1 << 25))) is None
    assert decode(bytes(SIZE)) is None


# --- records --------------------------------------------------------------------------------------------------------


def test_keys_and_values() -> None:
    run = records.new_run()
    assert records.new_run() != run
    key = records.key_of(run, 12, 345)
    assert key.decode() == f"{run}-000012-000000000345"
    assert records.sequences_of(run, 12, [key]).tolist() == [345]
    assert records.value_of(1_700_000_000_000_000, 20) == b"1700000000000000...."
    assert records.value_of(5, 0) == b"0000000000000005"


@pytest.mark.parametrize(
    "key",
    [
        None, b"", b"x", b"00ff00ff00ff00ff-000000-00000000000", b"00ff00ff00ff00ff-000000-00000000000x",
        b"00ff00ff00ff00ff-000000-+00000000001", b"00FF00ff00ff00ff-000000-000000000001",
        b"00ff00ff00ff00ff_000000-000000000001", b"00ff00ff00ff00ff-000000_000000000001",
        b"00ff00ff00ff00ff-00000 -000000000001", b"00ff00ff00ff00ff-000000-0000000000011",
    ],
)  # fmt: skip
def test_keys_of_others(key: bytes | None) -> None:
    assert records.sequences_of(RUN, 0, [key]).tolist() == [records.FOREIGN]


def test_sequences_of_another_run_and_partition() -> None:
    keys = [records.key_of(RUN, 3, 9), records.key_of(RUN, 4, 9), records.key_of("11" * 8, 3, 9)]
    assert records.sequences_of(RUN, 3, keys).tolist() == [9, -1, -1]


# --- what a process is told -----------------------------------------------------------------------------------------


def test_a_task_is_read_once_and_by_this_user_only(tmp_path: Path) -> None:
    security = Security("SASL_SSL", "SCRAM-SHA-512", "ops", "hunter2", "/ca.pem", ssl_key_password="k")
    target = Target("prod", ("a:1", "b:2"), "z:3/x", security, zookeeper_security=Security("SSL", ssl_cafile="/z.pem"))
    settings = ProducerSettings("t", RUN, partitions=(0, 2))
    path = tmp_path / "task"
    write_task(path, target, settings, tmp_path / "journal")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(OperationFailed):
        write_task(path, target, settings, tmp_path / "journal")
    task = take_task(path)
    assert (task.target, task.settings, task.journal) == (target, settings, tmp_path / "journal")
    assert task.parent.pid == os.getpid()
    assert not path.exists()
    assert "hunter2" not in repr(task)
    with pytest.raises(NotFound):
        take_task(path)
    write_task(path, target, ConsumerSettings("t", RUN), tmp_path / "journal")
    assert take_task(path).settings == ConsumerSettings("t", RUN)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"role": "x"}', "nul", '"x"', "7"])
def test_a_task_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "task").write_text(text)
    with pytest.raises(InvalidFile):
        take_task(tmp_path / "task")


def test_no_error_of_a_task_tells_a_secret(tmp_path: Path) -> None:
    target = Target("prod", ("a:1",), None, Security(sasl_password="hunter2"))
    path = tmp_path / "task"
    write_task(path, target, ConsumerSettings("t", RUN), tmp_path / "journal")
    for name in ("settings", "target", "parent", "role"):
        damaged = json.loads(path.read_text()) | {name: {"hunter2": "hunter2"}}
        (tmp_path / name).write_text(json.dumps(damaged))
        with pytest.raises(KctlError) as failed:
            take_task(tmp_path / name)
        assert "hunter2" not in failed.value.message
        assert failed.value.__cause__ is None
