"""Files in many forms against what Kafka's DumpLogSegments 3.9.2 and 4.4.0 print (tests/support/java_dumps.py)."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from java_dumps import SOURCES, Dump, load
from kctl.commands.app import main
from kctl.segment.dump import decoders, internal_topics
from kctl.segment.dump.dump import DumpOptions, DumpRun
from kctl.segment.dump.kafka_text import KafkaText
from kctl.segment.dump.kafka_text_options import KafkaTextOptions
from kctl.segment.dump.row_decoders import INTERNAL_TOPICS
from kctl.segment.dump.rows import RecordRow
from kctl.segment.format.release import Release
from kctl.segment.log.log_selection import select_logs
from kctl.segment.log.log_tally import TallyOptions, read_logs
from kctl.segment.log.source import Source
from kctl.segment.verify.findings import FileProblems
from kctl.segment.verify.log import LogCheck
from kctl.segment.verify.log_facts import Companions, LogOptions
from segment_files import Rec, batch, write

OLD, NEW = Release.KAFKA_3_9, Release.KAFKA_4_4
DUMPS = [pytest.param(dump, id=f"{name}: {dump.form.name}") for name in SOURCES for dump in load(name, OLD.value)]


def _options(release: Release, arguments: tuple[str, ...]) -> KafkaTextOptions:
    skip = "--skip-record-metadata" in arguments
    if "--print-data-log" in arguments:
        return KafkaTextOptions(release, deep=True, parser=decoders.TEXT, plain=True, skip_record_metadata=skip)
    for argument in arguments:
        name = argument.removeprefix("--").removesuffix("-decoder").replace("-", "_")
        if name in internal_topics.TEXTS:
            parse = internal_topics.TEXTS[name](release)
            return KafkaTextOptions(release, deep=True, parser=parse, skip_record_metadata=skip)
    return KafkaTextOptions(release, deep="--deep-iteration" in arguments, skip_record_metadata=skip)


def _check_text(release: Release, dump: Dump) -> None:
    """Dump the form in the working folder, and compare."""
    Path(dump.form.file).write_bytes(dump.form.data)
    out = io.BytesIO()
    text = KafkaText(_options(release, dump.form.arguments), out.write)
    text.dump(dump.form.file)
    if dump.exception is None:
        assert out.getvalue().decode(errors="replace") == dump.stdout.decode(errors="replace"), dump.form.name
        assert not text.unreadable
    else:  # there Kafka's tool ended; here it goes on behind the damage
        printed = out.getvalue()[: len(dump.stdout)]
        assert printed.decode(errors="replace") == dump.stdout.decode(errors="replace"), dump.form.name
        assert text.findings, dump.form.name


@pytest.mark.parametrize("dump", DUMPS)
def test_text(dump: Dump, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _check_text(OLD, dump)


@pytest.mark.parametrize("name", SOURCES)
def test_text_of_4_4(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test, since a test of its own takes longer than a form."""
    monkeypatch.chdir(tmp_path)
    for dump in load(name, NEW.value):
        _check_text(NEW, dump)


# --- what a decoder does not know is never exit code 0 ----------------------------------------------------------------


def _name(dump: Dump) -> str:
    (argument,) = dump.form.arguments
    return argument.removeprefix("--").removesuffix("-decoder").replace("-", "_")


def _check_decoders(release: Release, dump: Dump) -> None:
    Path(dump.form.file).write_bytes(dump.form.data)
    text = KafkaText(_options(release, dump.form.arguments), io.BytesIO().write)
    text.dump(dump.form.file)
    complains = re.search(rb"Error at|Unknown record type|unknown::", dump.stdout) or dump.exception
    assert not complains or text.finding_count, dump.form.name
    run = DumpRun([Path(dump.form.file)], DumpOptions(records=True, decode=INTERNAL_TOPICS[_name(dump)]))
    errors = [row.decode_error for row in run.rows() if isinstance(row, RecordRow)]
    assert run.undecoded == len([error for error in errors if error])
    if release is OLD and ": tag 0" in dump.form.name:  # which Kafka 4 has, and 3.9 has not
        return
    old_commit = "LegacyOffsetCommit: " in dump.form.name  # before 0.9; rows decode values of later versions too
    if b"Unknown record type" in dump.stdout or old_commit:  # rows know the types of Kafka 4
        assert text.finding_count or not run.undecoded, dump.form.name
    else:
        assert bool(run.undecoded) == bool(text.finding_count), dump.form.name


@pytest.mark.parametrize("dump", load("internal", OLD.value), ids=lambda dump: dump.form.name)
def test_decoders_agree(dump: Dump, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _check_decoders(OLD, dump)


def test_decoders_agree_about_records_of_4_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for dump in load("internal", NEW.value):
        _check_decoders(NEW, dump)


BROKEN = {
    "offsets": (b"\0\x63", b"v"),
    "transaction-log": (b"\0\x63", b"v"),
    "cluster-metadata": (None, b"\1\x63\0"),
    "remote-log-metadata": (None, b"\1\x63\0"),
    "share-group-state": (b"\0\x63", b"v"),
}


@pytest.mark.usefixtures("one_command_tree")
@pytest.mark.parametrize("output", ["table", "wide", "json", "csv", "kafka"])
@pytest.mark.parametrize("name", BROKEN)
def test_exit_code(name: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path, 0, [batch(0, [Rec(*BROKEN[name]), Rec(*BROKEN[name])])])
    arguments = ["segment", "dump", f"--{name}-decoder", "-o", output, str(log)]
    assert main(arguments) == 1
    assert "2 records could not be decoded" in capsys.readouterr().err


# --- dump -o json, stats, verify and find agree with Kafka's tool about wrappers -------------------------------------

WRAPPERS = [dump for dump in load("wrappers", "3.9") if "wrapper, " not in dump.form.name]
_RECORD = re.compile(r"\| offset: (-?\d+) \w+: (-?\d+) .*isValid: (\w+)")


def printed_records(dump: Dump) -> tuple[list[int], bool]:
    """The offsets that Kafka's tool printed, and whether it printed only good records."""
    found = _RECORD.findall(dump.stdout.decode(errors="replace"))
    batches_valid = "isvalid: false" not in dump.stdout.decode(errors="replace")
    return [int(offset) for offset, _, _ in found], batches_valid and all(valid == "true" for *_, valid in found)


@pytest.mark.parametrize("dump", WRAPPERS, ids=lambda dump: dump.form.name)
def test_others_agree(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / dump.form.file
    path.write_bytes(dump.form.data)
    offsets, good = printed_records(dump)
    sound = good and dump.exception is None
    run = DumpRun([path], DumpOptions(records=True))
    rows = [row for row in run.rows() if isinstance(row, RecordRow)]
    assert (run.damaged == 0) == sound
    findings = FileProblems()
    with Source(path) as source:
        options = LogOptions(deep=True, active=True)
        LogCheck(source, None, findings, Companions(), options).run()
    damage = {"records", "batch_crc", "batch_codec", "garbage"} & {each.code for each in findings.listed}
    assert bool(damage) != sound
    tally = read_logs(select_logs([path]), TallyOptions(0, 100, records=True))
    assert any(segment.damaged_places for log in tally.logs for segment in log.segments) != sound
    if sound:
        assert [row.offset for row in rows] == offsets
        assert tally.records.records == len(offsets)


def test_records_of_kafka_4(tmp_path: Path) -> None:
    """Written by Kafka's generated classes; rows know every type and field of them."""
    values = [each for each in load("internal", NEW.value) if re.search(r": a value of version [0-4]$", each.form.name)]
    seen = set()
    for dump in values:
        path = tmp_path / dump.form.file
        path.write_bytes(dump.form.data)
        run = DumpRun([path], DumpOptions(records=True, decode=INTERNAL_TOPICS[_name(dump)]))
        row = next(row for row in run.rows() if isinstance(row, RecordRow))
        name = dump.form.name.split(": ")[1].removeprefix("Legacy")
        if name == "TransactionLog" and row.decode_error:  # a state that does not exist
            assert "Unknown transaction state" in row.decode_error or "without partitions" in row.decode_error
            continue
        assert (row.decode_error, row.key["type"], row.value["type"]) == (None, f"{name}Key", f"{name}Value")
        assert run.undecoded == 0
        seen.add(name)
    assert {"OffsetCommit", "TransactionLog", "ShareSnapshot", "ShareUpdate", "StreamsGroupTopology"} <= seen
