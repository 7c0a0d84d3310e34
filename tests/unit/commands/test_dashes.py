"""Names that begin with a dash: the parser takes them for options, and says how they are given."""

from __future__ import annotations

import pytest

from kctl.commands.app import main


@pytest.mark.parametrize(
    ("argv", "advised"),
    [
        (["topic", "create", "-dash", "--partitions", "1"], "-- -dash"),
        (["topic", "describe", "--0rders.x"], "-- --0rders.x"),
        (["topic", "delete", "-1"], "-- -1"),
        (["lag", "-group"], "-- -group"),
        (["group", "describe", "-group"], "-- -group"),
        (["consume", "-dash"], "-- -dash"),
        (["user", "add", "-ops"], None),  # -o takes what stands behind it
        (["topic", "list", "--nope"], None),  # it takes no names
        (["lag", "--max-lga", "3"], None),  # an option was meant
    ],
)
def test_a_name_that_begins_with_a_dash(
    argv: list[str], advised: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert ("put it after all options and --" in err) is (advised is not None), err
    assert advised is None or err.rstrip().endswith(advised)
