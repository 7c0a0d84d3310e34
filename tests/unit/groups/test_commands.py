"""What kctl group refuses before anything is asked of a broker: one line, exit code 2, nothing on stdout."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.cluster.groups.names import check_group_id
from kctl.commands.app import main
from kctl.commands.group import commands
from kctl.errors import UsageError
from kctl.groups.overview import GroupSummary

pytestmark = pytest.mark.usefixtures("one_command_tree")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("list --watch -o csv", "--watch supports only tables"),
        ("remove-member g", "no member is selected"),
        ("remove-member g --all --member m", "no member is selected"),
        ("delete-offsets g", "no topic is selected"),
        ("delete-offsets g --topic t:", "is not a partition"),
        ("reset-offsets g --all-topics", "no target is set"),
        ("reset-offsets g --to-latest", "no topic is selected"),
        ("reset-offsets g --to-latest --to-earliest --all-topics", "cannot be combined"),
        ("reset-offsets g --to-latest --topic t --all-topics", "cannot be combined"),
        ("reset-offsets g --to-offset=-1 --all-topics", "is not an offset"),
        ("reset-offsets g --shift-by x --all-topics", "is not a number of messages"),
        ("reset-offsets g --to-datetime noon --all-topics", "is not a time"),
        ("reset-offsets g --by-duration 1y --all-topics", "is not a duration"),
        ("reset-offsets g --to-latest --topic t:x", "is not a partition"),
        ("reset-offsets g --to-latest --topic b@d", "only ASCII letters"),
        ("reset-offsets g --to-latest --all-topics -o wild", "is not a format"),
        ("import /dev/zero", "is not a file"),
        ("import FILE", "is not a whole number"),
        ("import FILE --topic t:x", "is not a partition"),
        ("reset-offsets g --from-file FILE", "is not a whole number"),
        ("export g --out .", "is a folder"),
        ("export g --out o.yaml -o yaml", "--out writes JSON, not yaml"),
    ],
)
def test_bad_input(arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("g,t,0,minus one\n")
    argv = [str(file) if word == "FILE" else word for word in arguments.split()]
    assert main(["group", *argv, "--bootstrap-server", "127.0.0.1:1"]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""
    assert "Traceback" not in err


def test_files_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("import",), ("reset-offsets", "g", "--from-file")):
        assert main(["group", *command, str(tmp_path / "no-such-file")]) == 4
        assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "message"), [("x" * 32_768, "has 32,768 bytes"), ("\udcff", "is not UTF-8 text")])
def test_no_group_ids(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_group_id(name)


@pytest.mark.parametrize(
    ("group_type", "protocol", "title"),
    [
        ("classic", "consumer", "g: Empty, 0 members, coordinator broker 1, Classic group"),
        (None, "connect", "g: Empty, 0 members, coordinator broker 1, Classic group, connect protocol"),
        ("share", "share", "g: Empty, 0 members, coordinator broker 1, Share group"),
    ],
)
def test_list_and_describe_name_the_type_as_kafka_does(group_type: str | None, protocol: str, title: str) -> None:
    row = GroupSummary("g", "Empty", protocol, group_type, 1, 0)
    assert commands._list_table([row]).rows[0]["type"] == (group_type or "classic").capitalize()
    group: Any = SimpleNamespace(
        group="g", state="Empty", members=(), coordinator=1, type=group_type, protocol_type=protocol, assignor="",
        epoch=None,
    )  # fmt: skip
    assert commands._title(group) == title
