"""The commands of kctl as operations of playbooks: all of them, described, and run in this process."""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from command_tree import every_command
from kctl.commands import app
from kctl.commands.terminal import operations, output
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.errors import NotFound, NotHealthy, Refused, UsageError
from kctl.playbook.lint.operation import placeholder
from kctl.playbook.operations import Operation, Where
from kctl.playbook.operations import operations as known

NAMES = sorted(operations.names())
HOSTILE = [
    "--yes",
    "-x",
    "--",
    "-",
    "a\nb",
    "a b",
    "",
    "=",
    "--dry-run=true",
    "é\u202e",
    "$(id)",
    "`id`",
    "{{ x }}",
    "@f",
]


def test_every_command_is_one() -> None:
    """Names are those of the command line; a new command is an operation, or is named among those that are none."""
    commands = {path for path, _ in every_command()}
    none = {
        "demo",
        "completion",
        "topic watch",
        "zk watch",
        *(path for path in commands if path.startswith("playbook ")),
    }
    assert {" ".join(operations.find(name).command) for name in NAMES} == commands - none
    assert all(name == ".".join(operations.find(name).command).replace("-", "_") for name in NAMES)
    assert len(set(NAMES)) == len(NAMES)
    assert known().find("topic.create").dry_run


@pytest.mark.parametrize(
    "name",
    [
        *("demo", "completion", "playbook.list", "topic.watch", "topic", "topic.create.x", "", ".", "topic..create"),
        *("Topic.Create", "group.reset-offsets", "topic.create\n", "\x1b"),
    ],
)
def test_what_is_none(name: str) -> None:
    with pytest.raises(NotFound):
        operations.find(name)


def test_what_was_meant() -> None:
    with pytest.raises(NotFound, match=r"there is no operation topic\.crate") as caught:
        operations.find("topic.crate")
    assert str(caught.value.hint).startswith("did you mean topic.create")


def test_aliases() -> None:
    for alias, name in operations.aliases().items():
        found, meant = operations.find(alias), operations.find(name)
        assert (found.name, found.command, found.arguments) == (alias, meant.command, meant.arguments)
    assert operations.command_line(operations.find("lag.check"), {"by": "group"}) == ["lag", "--by=group"]


@pytest.mark.parametrize("name", NAMES)
def test_described(name: str) -> None:
    found = operations.find(name)
    assert found.summary
    assert len({each.name for each in found.arguments}) == len(found.arguments)
    for each in found.arguments:
        assert each.name.isidentifier(), each.name
        assert not each.name.endswith("_"), each.name
        assert each.name not in {"dry_run", "watch", "follow", "interval", "output", "yes", "timeout", "context"}
        json.dumps(each.default)
        if not each.positional:
            assert f"--{each.name.replace('_', '-')}" in {o for p in _params(found) for o in p.opts + p.secondary_opts}
    assert found.dry_run <= found.changes


def _params(operation: Operation) -> Any:
    return operations._command(operation.name)[1].params


def test_names_are_those_of_the_command_line() -> None:
    """Not what a function calls its parameters, where Python has the word or they were renamed."""
    for name, argument in (("consume", "from"), ("consume", "format"), ("context.import", "format"),
                           ("group.remove_member", "all"), ("segment.find", "all"), ("cluster.create", "dir"),
                           ("context.add", "use"), ("topic.truncate", "offset_json_file")):  # fmt: skip
        assert operations.find(name).argument(argument) is not None, (name, argument)


@pytest.mark.parametrize("name", NAMES)
def test_what_lint_takes_for_an_unknown_value_is_taken(name: str) -> None:
    """Each argument alone, beside those that are required: choices, numbers and formats hold."""
    found = operations.find(name)
    required = {each.name: placeholder(each) for each in found.arguments if each.required}
    operations.check(found, required)
    for each in found.arguments:
        if each.kind == "flag" or each.choices:
            operations.check(found, {**required, each.name: placeholder(each)})


def _parsed(argv: list[str], operation: Operation) -> dict[str, Any]:
    command = operations._command(operation.name)[1]
    with command.make_context(operation.name, argv[len(operation.command) :], obj=Invocation()) as ctx:
        assert not ctx.obj.yes
        return dict(ctx.params)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_is_never_an_option(value: str) -> None:
    delete, produce, get = (operations.find(name) for name in ("topic.delete", "produce", "config.get"))
    parsed = _parsed(operations.command_line(delete, {"names": [value, "x"], "match": value}), delete)
    assert (parsed["names"], parsed["match"]) == ((value, "x"), (value,))
    assert not parsed["dry_run"]
    parsed = _parsed(operations.command_line(produce, {"topic": value, "key": value, "header": {"k": value}}), produce)
    assert (parsed["topic"], parsed["key"], parsed["header"]) == (value, value, (f"k={value}",))
    parsed = _parsed(operations.command_line(get, {"resource": value, "keys": value}), get)
    assert (parsed["resource"], parsed["keys"]) == (value, (value,))


def test_kinds_of_values() -> None:
    create, lag, set_ = (operations.find(name) for name in ("topic.create", "lag", "config.set"))
    argv = operations.command_line(
        create,
        {"names": ["a"], "partitions": 3, "config": {"retention.ms": 5, "preallocate": False}, "if_not_exists": True},
    )
    assert argv == ["topic", "create", "--partitions=3", "--config=retention.ms=5", "--config=preallocate=false",
                    "--if-not-exists", "--", "a"]  # fmt: skip
    assert operations.command_line(lag, {"members": False}) == ["lag", "--no-members"]
    assert operations.command_line(lag, {"members": True, "by": None}) == ["lag", "--members"]
    assert operations.command_line(create, {"names": "a", "if_not_exists": False}) == ["topic", "create", "--", "a"]
    assert operations.command_line(set_, {"resource": "topic/a", "values": {"x": 1}}) == [
        "config", "set", "--", "topic/a", "x=1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("topic.create", {"names": ["a"], "partitons": 3}, "topic.create has no argument partitons"),
        ("topic.create", {"names": ["a"], "dry_run": True}, "has no argument dry_run"),
        ("topic.create", {"names": ["a"], "yes": True}, "has no argument yes"),
        ("topic.create", {"partitions": 3}, "topic.create needs names"),
        ("config.get", {"keys": ["retention.ms"]}, "config.get needs resource"),  # keys would take its place
        ("topic.create", {"names": ["a"], "partitions": [1]}, "partitions takes one value, not a list"),
        ("topic.create", {"names": {"a": 1}}, "names does not take a mapping"),
        ("topic.create", {"names": [["a"]]}, "names takes text or a number, not list"),
        ("topic.create", {"names": [None]}, "names takes text or a number, not NoneType"),
        ("topic.create", {"names": ["a"], "if_not_exists": "yes"}, "is true or false, not 'yes'"),
    ],
)
def test_arguments_that_do_not_fit(name: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        operations.command_line(operations.find(name), arguments)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("topic.create", {"names": ["a"], "partitions": 0}, "0 is not in the range"),
        ("topic.create", {"names": ["a"], "partitions": "x"}, "'x' is not a valid whole number"),
        ("lag", {"by": "topc"}, "'topc' is not one of"),
    ],
)
def test_checked_as_the_command_line_does(name: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        operations.check(operations.find(name), arguments)
    assert says in caught.value.message
    assert caught.value.message.startswith(f"{name}: ")


def test_meant_of_an_argument() -> None:
    with pytest.raises(UsageError) as caught:
        operations.command_line(operations.find("topic.create"), {"names": ["a"], "partitons": 3})
    assert caught.value.hint == "did you mean partitions?"


# --- running: commands of this test, in kctl's own tree ---------------------------------------------------------------


def _forget() -> None:
    """What was looked up of the tree."""
    for cached in (operations.find, operations._command, operations._group):
        cached.cache_clear()


Run = Callable[..., tuple[Any, list[str]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Runs a function as the operation `probe.act`; gives its outcome and the notes. The streams are looked at."""

    def act(
        function: Callable[[Invocation], Any],
        *,
        stdin: bytes = b"",
        dry_run: bool = False,
        lines: bool = False,
        **where: Any,
    ) -> Any:
        if lines:
            monkeypatch.setattr(operations, "JSON_LINES", frozenset({"probe act"}))
        group = CommandGroup("Probe.")

        @group.command("act")
        def act_(ctx: typer.Context, dry_run: bool = typer.Option(False, "--dry-run")) -> Any:
            """Act."""
            return function(invocation(ctx)) if not dry_run else output.write_line('{"dry": true}')

        module = type(sys)("kctl_probe")
        module.app = group  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "kctl_probe", module)
        monkeypatch.setitem(app.GROUPS, "probe", ("kctl_probe", "Probe."))
        before = sys.stdin, sys.stdout, sys.stderr
        _forget()
        notes: list[str] = []

        def note(line: str) -> None:  # over the real streams: else it would be a note, or a result, again
            assert (sys.stdout, sys.stderr) == before[1:]
            notes.append(line)

        try:
            outcome = operations.run(
                operations.find("probe.act"), {}, Where(**where), dry_run=dry_run, stdin=stdin, note=note
            )
        finally:
            _forget()
            assert (sys.stdin, sys.stdout, sys.stderr) == before
        return outcome, notes

    return act  # type: ignore[return-value]


def test_json_is_the_value_and_stderr_are_notes(run: Run) -> None:
    def both(inv: Invocation) -> None:
        output.note("one")
        inv.emit([{"a": 1}], [])
        output.warn("two")
        sys.stderr.write("not ended")

    outcome, notes = run(both)
    assert (outcome.exit_code, outcome.value, outcome.error) == (0, [{"a": 1}], None)
    assert notes == ["one", "warning: two", "not ended"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("  \n", None),
        ("3", 3),
        ('{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        ('{"a":"\u2028"}\n{"a":2}\n', [{"a": "\u2028"}, {"a": 2}]),
        ("plain\ntext\n", "plain\ntext"),
    ],
)
def test_what_was_printed(run: Run, text: str, value: Any) -> None:
    outcome, _ = run(lambda inv: sys.stdout.write(text) and None)
    assert outcome.value == value


@pytest.mark.parametrize(
    ("text", "value"), [("", []), ('{"a":1}\n', [{"a": 1}]), ('{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}])]
)
def test_a_stream_is_a_list_however_much_it_is(run: Run, text: str, value: Any) -> None:
    outcome, _ = run(lambda inv: sys.stdout.write(text) and None, lines=True)
    assert outcome.value == value


@pytest.mark.parametrize("changed", [True, False, None])
def test_a_command_reports_whether_it_changed_something(run: Run, changed: bool | None) -> None:
    def act(inv: Invocation) -> None:
        inv.emit([], [], changed=changed)
        raise NotHealthy("not as it should be")

    outcome, _ = run(act)
    assert (outcome.exit_code, outcome.changed) == (1, changed)


def test_streams_are_commands() -> None:
    assert {name.replace(" ", ".") for name in operations.JSON_LINES} <= set(operations.names())


def test_bytes_and_characters_that_are_no_text(run: Run) -> None:
    outcome, _ = run(lambda inv: sys.stdout.buffer.write(b"\xff\x00") and None)
    assert outcome.value == "\udcff\x00"


def test_confirmed_and_where(run: Run) -> None:
    seen: list[Invocation] = []
    outcome, _ = run(seen.append, context="prod", timeout="5s", confirm_cluster="prod")
    (inv,) = seen
    assert (inv.yes, inv.output, inv.context, inv.timeout, inv.confirm_cluster) == (True, "json", "prod", "5s", "prod")
    assert outcome.exit_code == 0


def test_a_dry_run(run: Run) -> None:
    assert run(lambda inv: sys.stdout.write("1"), dry_run=True)[0].value == {"dry": True}


def test_stdin_is_what_is_given_and_never_the_terminal(run: Run) -> None:
    def echo(inv: Invocation) -> None:
        inv.emit([sys.stdin.isatty(), sys.stdin.read()], [])

    assert run(echo, stdin="zwölf\n".encode())[0].value == [False, "zwölf\n"]
    assert run(echo)[0].value == [False, ""]


def _raises(error: BaseException) -> Callable[[Invocation], None]:
    def act(inv: Invocation) -> None:
        inv.emit({"so": "far"}, [])
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (NotHealthy("lag"), 1, "lag"),
        (Refused("no"), 4, "no"),
        (RuntimeError("boom"), 5, "unexpected RuntimeError: boom"),
        (PermissionError(13, "Permission denied", "/x"), 5, "Permission denied: /x"),
        (RecursionError("deep"), 5, "RecursionError"),
    ],
)
def test_a_failure_is_the_steps_own(run: Run, error: Exception, code: int, says: str) -> None:
    """What was shown before it is its value, and the streams are as before."""
    outcome, _ = run(_raises(error))
    assert (outcome.exit_code, outcome.value) == (code, {"so": "far"})
    assert says in outcome.error.message


@pytest.mark.parametrize(("error", "code"), [(typer.Exit(2), 2), (SystemExit(3), 3), (SystemExit("x"), 5)])
def test_an_exit_is_no_end_of_the_run(run: Run, error: BaseException, code: int) -> None:
    outcome, _ = run(_raises(error))
    assert (outcome.exit_code, outcome.value, outcome.error) == (code, {"so": "far"}, None)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_an_interrupt_is_one(run: Run, error: BaseException) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(_raises(error))


def test_too_much_output(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(operations, "MAX_OUTPUT_BYTES", 1 << 20)

    def endless(inv: Invocation) -> None:
        while True:
            sys.stdout.write("x" * 100_000)

    outcome, _ = run(endless)
    assert (outcome.exit_code, outcome.value) == (5, None)
    assert "printed more than 1 MiB" in outcome.error.message
    gc.collect()
    assert capsys.readouterr().err == ""


def test_lines_of_notes() -> None:
    told: list[str] = []
    notes = operations._Notes(told.append)
    for text in ("half", " a line\rand\n\n", "rest"):
        notes.write(text)
    notes.end()
    assert told == ["half a line", "and", "rest"]


def test_arguments_that_do_not_fit_are_an_outcome() -> None:
    outcome = operations.run(operations.find("topic.create"), {}, Where(), note=lambda line: None)
    assert outcome.exit_code == 2
    assert outcome.error is not None
    assert sys.stdout is not None


def test_a_real_one_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("KCTL_CONFIG", raising=False)
    outcome = operations.run(operations.find("context.list"), {}, Where(), note=lambda line: None)
    assert (outcome.exit_code, outcome.value) == (0, [])
    nowhere = Where(bootstrap_server="127.0.0.1:1", timeout="2s")
    outcome = operations.run(operations.find("topic.list"), {}, nowhere, note=lambda line: None)
    assert outcome.exit_code == 3
    assert outcome.error is not None


def test_threads_that_write_meanwhile(run: Run) -> None:
    def talk() -> None:
        for _ in range(50):
            output.note("x")

    def many(inv: Invocation) -> None:
        threads = [threading.Thread(target=talk) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        inv.emit(1, [])

    outcome, notes = run(many)
    assert outcome.value == 1
    assert "".join(notes).count("x") == 200
