"""The documentation site builds without a warning, works offline, and its pages work as plain Markdown as well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
_LINK = re.compile(r"(?<!`)!?\[(?:[^\]`]|`[^`]*`)*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; warnings are errors."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    sources = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert sources - built == {Path("README.html")}  # MkDocs names it index.html
    assert Path("index.html") in built


def test_the_site_fetches_nothing(site: Path) -> None:
    fetched = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^\"'> ]+")
    assert [(p.name, m) for p in site.rglob("*.html") for m in fetched.findall(p.read_text(encoding="utf-8"))] == []


def test_every_code_block_is_one(site: Path) -> None:
    assert [path.name for path in site.rglob("*.html") if "```" in path.read_text(encoding="utf-8")] == []


def prose(path: Path) -> str:
    """Return the text without code blocks and comments."""
    text = re.sub(r"^( *)```.*?^\1```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """Return the anchors that code hosts give to the headings."""
    counts: Counter[str] = Counter()
    result = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", prose(path), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        result.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return result


def test_anchors_are_those_of_code_hosts(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `kctl lag`: Übersicht, a_b (c)\n\n```sh\n# a comment\n```\n## Log\n## Log\n")
    assert anchors(page) == {"kctl-lag-übersicht-a_b-c", "log", "log-1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_plain_markdown_lead_somewhere(page: Path) -> None:
    broken = []
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


def test_the_glossary_is_sorted() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for section in text.split("\n## ")[1:]:
        terms = re.findall(r"^\| (.+?) \| .+\. \|$", section, re.MULTILINE)
        assert len(terms) == len(re.findall(r"^\| ", section, re.MULTILINE)) - 2
        assert terms == sorted(set(terms), key=str.lower)
