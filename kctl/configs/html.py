"""Convert Kafka's HTML documentation of configs to plain text."""

from __future__ import annotations

import html
import re

_BREAKS = re.compile(r"<(?:br|p|/p|ul|/ul|/li)\s*/?>", re.IGNORECASE)
_ITEM = re.compile(r"<li\s*>", re.IGNORECASE)
_LINK = re.compile(r'<a\s[^>]*href="([^"]*)"[^>]*>(.*?)</a>', re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"</?(?:code|b|i|em|strong|pre|a|span|div)\b[^>]*>", re.IGNORECASE)


def plain(text: str) -> str:
    """Return text without tags: links as "text (address)", items as lines with a dash, whitespace collapsed."""
    text = _LINK.sub(lambda match: match[2] if match[1].startswith("#") else f"{match[2]} ({match[1]})", text)
    text = _ITEM.sub("\n- ", _BREAKS.sub("\n", text))
    text = html.unescape(_TAG.sub("", text))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
