"""docs/migration.md: every option of every Java tool has a row, and every command and option of kctl's exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer._click.exceptions import ClickException

from kctl.base.timestamps import parse_timestamp
from kctl.base.units import parse_duration_ms
from kctl.commands import app
from kctl.commands.terminal.invocation import Invocation
from kctl.deploy.runtime.java import find_java
from kctl.errors import KctlError
from kctl.topics.offsets import parse_offset_spec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migration.md"
TOOLS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
}
TOOLS_OF_4 = {  # for clusters without ZooKeeper
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
}
SUBCOMMANDS = {
    "kafka-transactions": ("list", "describe", "describe-producers", "abort", "find-hanging"),
    "kafka-features": ("describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies"),
}
SHELL = "org.apache.zookeeper.ZooKeeperMain"

_OPTION = re.compile(r"^(?:  -\w, |  )?(--[a-z][a-z.-]*)", re.MULTILINE)


def sections() -> dict[str, list[tuple[str, str]]]:
    """Heading → its rows: what the Java tool has, what kctl has."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        cells = re.fullmatch(r"\| (.+?) \| (.+) \|", line)
        if cells and cells[1].startswith("`"):
            found.setdefault(heading, []).append((cells[1], cells[2]))
    return found


def left(heading: str) -> set[str]:
    return {word for cell, _ in sections()[heading] for word in re.findall(r"`([^`]+)`", cell)}


def java(kafka_home: Path, *argv: str) -> str:
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{kafka_home}/libs/*"]
    done = subprocess.run(
        [str(find_java().executable), *flags, *argv],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def java_options(home: Path, tool: str, main: str) -> set[str]:
    """What the tool's help names: options, subcommands and the options of those."""
    has = java(home, main, "--help")
    options = set(_OPTION.findall(has)) | set(SUBCOMMANDS.get(tool, ()))
    for subcommand in SUBCOMMANDS.get(tool, ()):
        options |= set(_OPTION.findall(java(home, main, subcommand, "--help")))
    assert len(options) >= 4, has
    return options


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_of_the_tool_has_a_row(tool: str, kafka_home: Path) -> None:
    assert left(tool) == java_options(kafka_home, tool, TOOLS[tool])


@pytest.mark.parametrize("tool", TOOLS_OF_4)
def test_every_option_of_a_tool_of_kafka_4_has_a_row(tool: str, kafka_4_home: Path) -> None:
    assert left(tool) == java_options(kafka_4_home, tool, TOOLS_OF_4[tool])


def test_every_command_of_zookeepers_shell_has_a_row(kafka_home: Path) -> None:
    # What cannot be parsed is answered with the list of commands.
    listed = java(kafka_home, SHELL, "-server", "127.0.0.1:1", "nosuch")
    commands = set(re.findall(r"^\t(\w+)", listed, re.MULTILINE))
    assert "getAcl" in commands, listed
    assert left("zookeeper-shell") == commands


def spans() -> list[tuple[str, str]]:
    """What kctl's cells have in backticks, with the section."""
    return [(heading, span) for heading, rows in sections().items() for _, cell in rows for span in
            re.findall(r"`([^`]+)`", cell)]  # fmt: skip


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The click command that `words` (behind "kctl") name, and the words that are left."""
    command = app.load(words[0])
    rest = words[1:]
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        command = command.commands[rest[0]]
        rest = rest[1:]
    return command, rest


def options_of(command: Any) -> set[str]:
    return {"--help", "--version"}.union(*(param.opts + param.secondary_opts for param in command.params))


def superfluous(command: Any, words: list[str]) -> list[str]:
    """The words that the command has no argument for. Missing ones are left out of prose, and are not told."""
    _, rest, _ = command.make_parser(command.context_class(command)).parse_args(list(words))
    return list(rest)


@pytest.mark.usefixtures("one_command_tree")
def test_superfluous_words_are_seen() -> None:
    for words, left_over in (
        (["topic", "list", "NAME"], ["NAME"]),
        (["group", "reset-offsets", "G", "--shift-by", "-10"], []),
        (["broker", "log-dirs", "1", "2"], []),
        (["transaction", "abort", "T", "--partition", "0", "X"], ["X"]),
    ):
        command, rest = command_of(words)
        assert superfluous(command, rest) == left_over, words


def fault(words: list[str]) -> str | None:
    """Why a command line is refused before anything is asked, times and durations included. None when it is not."""
    command, rest = command_of(words)
    try:
        context = command.make_context("kctl", list(rest), obj=Invocation())
        for param in command.params:
            value = context.params.get(param.name)
            if isinstance(value, str):
                _READ.get(param.metavar or "", str)(value)
    except KctlError as exc:
        return exc.message
    except ClickException as exc:
        return str(exc.format_message())
    return None


_READ: dict[str, Any] = {"TIME": parse_timestamp, "WHEN": parse_offset_spec, "DURATION": parse_duration_ms}


@pytest.mark.usefixtures("one_command_tree")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("topic offsets NAME --time 2h", "'2h' is not a time"),
        ("topic offsets NAME --time -2h", None),
        ("topic offsets NAME --time earliest", None),
        ("topic truncate NAME --before-time 2h", "'2h' is not a time"),
        ("consume TOPIC --from 2h", "'2h' is not a time"),
        ("consume TOPIC --idle-timeout soon", "'soon' is not a duration"),
        ("transaction abort TOPIC --partition 0", "--start-offset"),
        ("transaction abort TOPIC --partition x --start-offset 42", "'x' is not a valid whole number"),
        ("zk get PATH PATH", "unexpected extra argument"),
    ],
)
def test_command_lines_that_are_refused_are_seen(line: str, said: str | None) -> None:
    assert (said or "") in (fault(line.split()) or "")
    assert (fault(line.split()) is None) == (said is None)


@pytest.mark.usefixtures("one_command_tree")
def test_every_command_line_is_taken() -> None:
    lines = [shlex.split(span)[1:] for _, span in spans() if span.startswith("kctl ") and "--version" not in span]
    whole = [words for words in lines if command_of(words)[1]]  # a bare command is spoken of, not shown
    assert len(whole) > 50
    assert [(words, why) for words in whole if (why := fault(words))] == []


@pytest.mark.usefixtures("one_command_tree")
def test_every_command_and_option_exists() -> None:
    wrong = []
    known: dict[str, set[str]] = {}
    for heading, span in spans():
        words = shlex.split(span)
        if words[0] == "kctl" and words[1:2] != ["--version"]:
            if words[1] not in app.GROUPS:
                wrong.append(span)
                continue
            command, rest = command_of(words[1:])
            known.setdefault(heading, set()).update(options_of(command))
            if (
                hasattr(command, "commands")
                or any(word.startswith("--") and word not in options_of(command) for word in rest)
                or superfluous(command, rest)
            ):
                wrong.append(span)
    for heading, span in spans():
        every = known.get(heading) or options_of(app.load("completion"))
        if span.startswith("--") and span.split()[0] not in every:
            wrong.append(f"{heading}: {span}")
    assert not wrong
