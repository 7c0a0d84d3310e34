"""A hook of the documentation site (mkdocs.yml): reduce the first line of code blocks to what MkDocs accepts."""

from __future__ import annotations

import re
from typing import Any

# "```console cluster": code hosts accept more words after the language; Python-Markdown ends the block there.
_FENCE = re.compile(r"^(```\w+)[ \t].*$", re.MULTILINE)


def on_page_markdown(markdown: str, **_unused: Any) -> str:
    """Return the page with only the language after each fence."""
    return _FENCE.sub(r"\1", markdown)
