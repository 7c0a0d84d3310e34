"""Logs: entries, merging, tails, and following across a roll."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from kctl.commands.cluster.view import _show
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import ClusterSpec
from kctl.deploy.layout_request import LayoutRequest, build_spec
from kctl.deploy.logs import Follower, LogReader, compile_pattern, log_excerpt, merged, parse_entries
from kctl.errors import UsageError

HOST = LocalHost()


@pytest.fixture
def spec(tmp_path: Path) -> ClusterSpec:
    found = build_spec(
        LayoutRequest(name="dev", layout="single"), directory=tmp_path, base_port=9000, kafka_version="3.9.2",
        kafka_libs=Path("/k"), created_at="x",
    )  # fmt: skip
    for node in found.nodes:
        found.log_path(node).parent.mkdir(parents=True)
    return found


def line(second: int, text: str, level: str = "INFO") -> str:
    return f"[2026-01-31 12:00:{second:02d},{500:03d}] {level} {text} (kafka.X)\n"


def texts(spec: ClusterSpec, *, tail: int | None = None, grep: str | None = None) -> list[str]:
    found = merged(LogReader(HOST, spec), spec.nodes, matches=compile_pattern(grep), tail=tail)
    return [f"{e.node}:{e.text.split('] ')[-1].split(' (')[0]}" for e in found]


def test_entries_keep_their_stack_traces() -> None:
    lines = ["half a line", line(1, "one").rstrip(), "java.lang.X: y", "\tat z", line(2, "two", "ERROR").rstrip()]
    first, second, third = parse_entries("n", lines)
    assert (first.time, first.level, first.text) == (None, None, "half a line")
    assert second.time == datetime(2026, 1, 31, 12, 0, 1, 500_000, tzinfo=timezone.utc)
    assert second.text.endswith("\njava.lang.X: y\n\tat z")
    assert third.level == "ERROR"


def test_a_time_that_cannot_be() -> None:
    (entry,) = parse_entries("n", ["[2026-02-31 12:00:00,000] INFO x"])
    assert entry.time is None


def test_merged_by_time_over_rolled_files(spec: ClusterSpec) -> None:
    zookeeper, broker = spec.nodes
    log = spec.log_path(broker)
    log.with_name("server.log.10").write_text(line(1, "a"))
    log.with_name("server.log.2").write_text(line(2, "b"))
    log.with_name("server.log.1").write_text(line(4, "d"))
    log.write_text(line(6, "f") + "unfinished")
    log.with_name("server.log.old").write_text(line(9, "not a log"))
    spec.log_path(zookeeper).write_text(line(3, "c") + line(5, "e", "WARN"))
    assert texts(spec) == [
        "broker-1:INFO a", "broker-1:INFO b", "zookeeper-1:INFO c", "broker-1:INFO d", "zookeeper-1:WARN e",
        "broker-1:INFO f",
    ]  # fmt: skip
    assert texts(spec, tail=2) == ["zookeeper-1:WARN e", "broker-1:INFO f"]
    assert texts(spec, tail=1, grep="INFO [a-d]") == ["broker-1:INFO d"]
    assert texts(spec, tail=0) == []


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        compile_pattern("(")


def test_following_loses_nothing_when_the_log_rolls(spec: ClusterSpec) -> None:
    broker = spec.brokers[0]
    log = spec.log_path(broker)
    log.write_text(line(1, "before"))
    follower = Follower(LogReader(HOST, spec), [broker])

    def new() -> list[str]:
        return [e.text.split("INFO ")[-1].split(" (")[0] for e in follower.poll()]

    assert new() == []
    with log.open("a") as file:
        file.write(line(2, "one") + "[2026-01-31 12:00:03,500] INFO tw")
    assert new() == ["one"]
    with log.open("a") as file:
        file.write("o (kafka.X)\n" + line(4, "three"))
    log.rename(log.with_name("server.log.1"))
    log.write_text(line(5, "four"))
    assert new() == ["two", "three", "four"]
    assert new() == []


def test_following_a_log_that_does_not_exist_yet(spec: ClusterSpec) -> None:
    follower = Follower(LogReader(HOST, spec), [spec.brokers[0]])
    assert follower.poll() == []
    spec.log_path(spec.brokers[0]).write_text(line(1, "first"))
    assert len(follower.poll()) == 1


def test_why_it_ended(spec: ClusterSpec) -> None:
    broker = spec.brokers[0]
    old, new = line(1, "old failure", "ERROR"), "".join(line(n, f"info {n}") for n in range(2, 30))
    spec.log_path(broker).write_text(old + new)
    spec.console_path(broker).write_text("log4j:WARN noise\nError: no heap\n")
    excerpt = log_excerpt(HOST, spec, broker, since=len(old))
    assert "info 29" in excerpt[-2]
    assert excerpt[-1] == "Error: no heap"
    assert not any("old failure" in text for text in excerpt)
    with spec.log_path(broker).open("a") as file:
        file.write(line(31, "Fatal error", "ERROR") + "Caused by: it\n" + line(32, "shut down"))
    assert "Fatal error" in log_excerpt(HOST, spec, broker, since=len(old))[0]


def test_tabs_of_stack_traces_are_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    """Elsewhere a tab is escaped: a cell of a table is one line."""
    _show(parse_entries("broker-3", [line(1, "one").rstrip(), "\tat z\x1b"]), None, 10)
    assert capsys.readouterr().out.splitlines()[1] == "broker-3            at z\\x1b"


# --- hostile logs -----------------------------------------------------------------------------------------------------


def test_what_is_no_regular_file_is_named(spec: ClusterSpec, tmp_path: Path) -> None:
    broker = spec.brokers[0]
    log = spec.log_path(broker)
    log.write_text(line(1, "one"))
    os.mkfifo(log.with_name("server.log.1"))
    log.with_name("server.log.2").symlink_to("/dev/zero")
    log.with_name("server.log.3").mkdir()
    log.with_name("server.log.4").symlink_to("server.log.4")
    log.with_name("server.log.5").symlink_to(tmp_path / "nowhere")
    reading = LogReader(HOST, spec)
    found = list(merged(reading, [broker], matches=compile_pattern(None), tail=None))
    assert [entry.text for entry in found] == [line(1, "one").rstrip()]
    named = {text.split(":")[0].split("/")[-1] for text in reading.unreadable}
    assert named == {"server.log.1", "server.log.2", "server.log.3", "server.log.4"}


def test_a_log_that_is_a_fifo(spec: ClusterSpec) -> None:
    broker = spec.brokers[0]
    os.mkfifo(spec.log_path(broker))
    os.mkfifo(spec.console_path(broker))
    assert log_excerpt(HOST, spec, broker) == []
    follower = Follower(LogReader(HOST, spec), [broker])
    assert follower.poll() == []


def test_a_log_that_grows_faster_than_it_is_read(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where it ended at first; following reads so much at once."""
    broker = spec.brokers[0]
    log = spec.log_path(broker)
    log.write_text(line(1, "first"))
    reading = LogReader(HOST, spec)
    follower = Follower(reading, [broker])
    read = LocalHost.read_from
    grown = 0

    def growing(host: LocalHost, path: Path, offset: int, max_bytes: int) -> bytes:
        nonlocal grown
        grown += 1
        assert grown < 100
        with log.open("a") as file:
            file.write(line(2, "x" * 2000) * 1000)
        return read(host, path, offset, max_bytes)

    monkeypatch.setattr(LocalHost, "read_from", growing)
    shown = list(merged(reading, [broker], matches=compile_pattern(None), tail=None, follower=follower))
    assert len(shown) == 1
    assert 0 < len(follower.poll()) < 10_000


def test_nothing_is_shown_twice_when_following(spec: ClusterSpec) -> None:
    broker = spec.brokers[0]
    log = spec.log_path(broker)
    log.write_text(line(1, "a"))
    reading = LogReader(HOST, spec)
    follower = Follower(reading, [broker])
    with log.open("a") as file:
        file.write(line(2, "b"))
    log.rename(log.with_name("server.log.1"))
    log.write_text(line(3, "c"))
    before = merged(reading, [broker], matches=compile_pattern(None), tail=None, follower=follower)
    texts = [entry.text for entry in (*before, *follower.poll())]
    assert texts == [line(1, "a").rstrip(), line(2, "b").rstrip(), line(3, "c").rstrip()]


def test_two_rolls_between_two_looks(spec: ClusterSpec) -> None:
    broker = spec.brokers[0]
    log = spec.log_path(broker)
    log.write_text(line(1, "a"))
    follower = Follower(LogReader(HOST, spec), [broker])
    with log.open("a") as file:
        file.write(line(2, "b"))
    log.rename(log.with_name("server.log.2"))
    log.with_name("server.log.1").write_text(line(3, "c"))
    log.write_text(line(4, "d"))
    assert len(follower.poll()) == 3
    assert follower.poll() == []
    log.write_text(line(5, "e"))  # cut, and written anew
    log.unlink()
    assert follower.poll() == []
    log.write_text(line(6, "f"))
    assert len(follower.poll()) == 1


def test_a_log_that_is_cut(spec: ClusterSpec) -> None:
    broker = spec.brokers[0]
    log = spec.log_path(broker)
    log.write_text(line(1, "a") * 10)
    follower = Follower(LogReader(HOST, spec), [broker])
    os.truncate(log, 0)
    with log.open("a") as file:
        file.write(line(2, "b"))
    assert [entry.text for entry in follower.poll()] == [line(2, "b").rstrip()]


def test_what_is_cut_off_is_said() -> None:
    (entry,) = parse_entries("n", [line(1, "x" * 20_000).rstrip()])
    assert entry.text.endswith("... (11849 more characters)")
    (entry,) = parse_entries("n", [line(1, "one").rstrip(), *["at x"] * 1000])
    assert entry.text.endswith("\n... (601 more lines)")
    (entry,) = parse_entries("n", [line(1, "one").rstrip(), *["y" * 8000] * 1000])
    assert len(entry.text) < 100_000
    assert "more lines)" in entry.text


@pytest.mark.parametrize(
    "text",
    ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\r overwritten", "\x00\x08", "\u202e"],
)
def test_terminals_are_safe(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    _show(parse_entries("broker-3", [line(1, f"a{text}b").rstrip()]), None, 0)
    shown = capsys.readouterr().out
    assert not any(character in shown.rstrip("\n") for character in text if not character.isprintable())


def test_binary(spec: ClusterSpec, capsys: pytest.CaptureFixture[str]) -> None:
    log = spec.log_path(spec.brokers[0])
    log.write_bytes(bytes(range(256)) * 5000 + b"\n" + line(1, "good").encode())
    found = list(merged(LogReader(HOST, spec), spec.nodes, matches=compile_pattern(None), tail=None))
    assert found[-1].text == line(1, "good").rstrip()
    _show(found, None, 0)
    assert "\x1b" not in capsys.readouterr().out
