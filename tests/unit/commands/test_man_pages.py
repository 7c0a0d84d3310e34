"""Manual pages: one for each command and group, in roff that groff accepts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from command_tree import every_command, examples_of
from kctl.commands import app
from kctl.commands.completion.man_pages import MARKER, man_pages, write_pages
from kctl.errors import ExitCode

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return man_pages()


def plain(text: str) -> str:
    """Return the text without fonts and escapes."""
    return re.sub(r"\\f[BP]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def test_every_command_has_a_page(pages: dict[str, str]) -> None:
    commands = {f"kctl-{path.replace(' ', '-')}.1" for path, _ in every_command()}
    assert commands <= set(pages)
    assert {"kctl.1", *(f"kctl-{name}.1" for name in app.GROUPS), "kctl-topic-reassign.1"} <= set(pages)


def test_every_option_and_example_is_on_the_page(pages: dict[str, str]) -> None:
    for path, command in every_command():
        text = plain(pages[f"kctl-{path.replace(' ', '-')}.1"])
        options = [param.opts[0] for param in command.params if param.opts[0].startswith("-") and not param.hidden]
        assert [option for option in options if option not in text] == [], path
        for comment, line in examples_of(command):
            assert f"{comment}\n{line}".replace("…", "...") in text, path


def test_references_lead_to_pages(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert [r for r in re.findall(r"\b(kctl[\w-]*)\(1\)", plain(text)) if f"{r}.1" not in pages] == [], name


def test_the_exit_codes_are_all_described() -> None:
    assert set(app.EXIT_MEANINGS) == set(ExitCode)


def test_the_structure_is_that_of_a_manual_page(pages: dict[str, str]) -> None:
    request = re.compile(r"\.(\\\"|TH|SH|PP|TP|RS|RE|nf|fi|nh|ad)( |$)")
    for name, text in pages.items():
        assert text.startswith(f"{MARKER}\n.TH "), name
        assert re.findall(r"^\.SH (.*)", text, re.MULTILINE)[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
        assert [line for line in text.splitlines() if line[:1] in {".", "'"} and not request.match(line)] == [], name
        assert text.isascii(), name
        assert text.count("\\fB") == text.count("\\fP"), name
        assert text.count(".nf") == text.count(".fi"), name


def test_groff_accepts_every_page(tmp_path: Path) -> None:
    write_pages(tmp_path)
    if not shutil.which("groff"):  # the structure is checked above
        return
    argv = ["groff", "-man", "-ww", "-Tascii", *sorted(map(str, tmp_path.iterdir()))]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stderr == ""


def test_pages_of_removed_commands_go_and_foreign_pages_stay(tmp_path: Path) -> None:
    (tmp_path / "kctl-old.1").write_text(f"{MARKER}\n")
    (tmp_path / "kctl-lag.1").write_text("mine\n")
    write_pages(tmp_path)
    write_pages(tmp_path)
    assert not (tmp_path / "kctl-old.1").exists()
    assert (tmp_path / "kctl-lag.1").read_text() == "mine\n"
    assert (tmp_path / "kctl-topic-list.1").exists()


def test_install_sh_knows_the_pages_by_their_first_line() -> None:
    assert f"MAN_PAGE='{MARKER}'" in (ROOT / "install.sh").read_text(encoding="utf-8")
