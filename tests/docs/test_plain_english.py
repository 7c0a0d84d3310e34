"""Texts are plain English: no guillemets, and no phrases of a literal translation. See "Style" in CONTRIBUTING.md."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from command_tree import every_command

ROOT = Path(__file__).resolve().parents[2]
# A phrase in lower case, with regular expressions → what to write instead.
PHRASES = {
    r"(is|are|was|were|be|been) told": "is reported, is shown",
    r"tells": "reports, prints, shows, returns",
    r"(is|are|was) said": "is stated, is described",
    r"go(es|ing)? on|went on": "continues, resumes",
    r"how far it came": "outcome unknown",
    r"(?<!user:)(some|no|any|every)body": "someone, no one, anyone, everyone",
    r"whoever": "anyone who, or name the person",
    r"who comes from": "Coming from …?",
    r"needs? you": "needs attention",
    r"without a word": "silently",
    r"without\.(?=[\s\"')|]|\Z)": "(default: X)",
    r"as (it|they) (is|are) without": "unchanged, the default",
    r"for the time it takes": "used for the estimate",
    r"so long ago": "at this long ago",
    r"(is|are|was|were) gone": "was deleted, is down, does not exist",
    r"(is|are|was|were)( not)? asked for": "is requested",
    r"to be had": "available",
    r"in vain": "without effect",
    r"give --": "set --x",
    r"right\?": "check X",
}
_GUILLEMETS = re.compile(
    "[\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}]"
)
_GAP = r"[\s\"#]+(?:f\")?"  # also a line break within a comment or between two literals
_PHRASES = re.compile("|".join(rf"\b(?:{each.replace(' ', _GAP)})(?!\w)" for each in PHRASES))


def _files() -> dict[str, str]:
    """Return the tracked text files without tests and stubs, by path."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {}
    for name in listed.split("\0"):
        path = ROOT / name
        if not name or name.startswith(("tests/", "stubs/")) or path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            texts[name] = data.decode()
    return texts


def phrases_in(text: str) -> list[str]:
    """Return line number and wording of each phrase to avoid."""
    lower = text.lower()
    return [f"{lower.count(chr(10), 0, each.start()) + 1}: {each.group()!r}" for each in _PHRASES.finditer(lower)]


def test_no_guillemets() -> None:
    files = _files()
    assert len(files) > 1000
    assert [name for name, text in files.items() if _GUILLEMETS.search(text)] == []


def test_files_are_plain_english() -> None:
    places = [f"{name}:{each}" for name, text in _files().items() for each in phrases_in(text)]
    assert places == [], "PHRASES has what to write instead"


def test_help_is_plain_english() -> None:
    for path, command in every_command():
        for text in (command.help or "", *(getattr(param, "help", None) or "" for param in command.params)):
            assert phrases_in(text) == [], f"kctl {path}: {text}"


@pytest.mark.parametrize(
    "text",
    [
        "It goes on.",
        "the topic is\n# told",
        '"it is "\n    f"told"',
        "What needs you",
        "Nobody knows",
        "Mode; text without.",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    assert phrases_in(text)


@pytest.mark.parametrize("text", ["logged in as User:nobody", "retold", "the foregoing only", "packed.tell()"])
def test_other_texts_pass(text: str) -> None:
    assert phrases_in(text) == []
