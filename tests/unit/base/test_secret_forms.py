"""A secret is hidden in every form in which programs write it down."""

from __future__ import annotations

import base64
import json
import re
import shlex
import time
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus, urlencode
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.base.secrets import Redactor

SECRETS = [
    "pass<word>&\"more'",
    "with blank and + and %41",
    "p=ss/w?rd#1&x",
    "żółć-naïve-注文",
    "emoji🙂and🙃",
    "back\\slash\\n",
    "tab\tand\nline",
    "it's 'quoted'",
    "50%25off&amp;",
    "user:pa$$@host",
    "plainword42",
    "a~b!c*d(e)f",
    "{{ x }}",
]


def lower_percent(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), quote(text, safe=""))


def every_byte(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def numeric(text: str) -> str:
    return "".join(f"&#{ord(char)};" for char in text)


def hexadecimal(text: str) -> str:
    return "".join(f"&#x{ord(char):X};" if not char.isalnum() else char for char in text)


def utf16(text: str, form: str = "04x") -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2], 'big'):{form}}" for at in range(0, len(units), 2))


FORMS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "percent": lambda text: quote(text, safe=""),
    "percent, slashes stay": quote,
    "percent, small": lower_percent,
    "percent, as encodeURIComponent": lambda text: quote(text, safe="!~*'()"),
    "percent, userinfo": lambda text: quote(text, safe="!$&'()*+,;=:~"),
    "percent, every byte": every_byte,
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent, twice, small": lambda text: quote(lower_percent(text), safe=""),
    "percent, three times": lambda text: quote(quote(quote(text, safe=""), safe=""), safe=""),
    "form": quote_plus,
    "form, twice": lambda text: quote_plus(quote_plus(text)),
    "query": lambda text: urlencode({"q": text, "x": "1"}),
    "HTML": escape,
    "HTML text": lambda text: escape(text, quote=False),
    "HTML, apostrophe by number": lambda text: escape(text).replace("&#x27;", "&#39;"),
    "HTML, apostrophe by name": lambda text: escape(text).replace("&#x27;", "&apos;"),
    "HTML, quotation mark by number": lambda text: escape(text).replace("&quot;", "&#34;"),
    "HTML, twice": lambda text: escape(escape(text)),
    "HTML, numbers": numeric,
    "HTML, hexadecimal": hexadecimal,
    "HTML, ASCII only": lambda text: escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "XML": xml_escape,
    "XML attribute": quoteattr,
    "JSON": json.dumps,
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON, large hexadecimal": lambda text: re.sub(
        r"(?<=\\u)[0-9a-f]{4}", lambda found: found.group().upper(), json.dumps(text)
    ),
    "JSON, slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON, for HTML": lambda text: re.sub("[<>&']", lambda found: f"\\u00{ord(found.group()):02x}", json.dumps(text)),
    "JSON, every character": utf16,
    "JSON, every character, large": lambda text: utf16(text, "04X"),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": text})),
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps({"a": text}))),
    "JSON in HTML": lambda text: escape(json.dumps({"a": text})),
    "percent in JSON": lambda text: json.dumps({"url": f"https://h/?q={quote(text, safe='')}"}),
    "percent in HTML": lambda text: escape(f"https://h/?a=b&q={quote_plus(text)}"),
    "HTML in JSON": lambda text: json.dumps(escape(text)),
    "repr": repr,
    "ascii": ascii,
    "bytes": lambda text: repr(text.encode()),
    "shell": shlex.quote,
    "shell, backslash": lambda text: "'" + text.replace("'", "'\\''") + "'",
    "YAML": lambda text: yaml.safe_dump({"a": text}, width=10_000),
    "YAML, single quotes": lambda text: "'" + text.replace("'", "''") + "'",
    "YAML, double quotes": lambda text: yaml.safe_dump({"a": text}, default_style='"', width=10_000),
    "base64": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "base64, percent": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "URL": lambda text: f"https://user:{quote(text, safe='')}@host:1/path",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS)
def test_hidden_in_every_form(form: str, secret: str) -> None:
    if "YAML, single" in form and "\n" in secret:
        secret = secret.replace("\n", " ")
    coded = FORMS[form](secret)
    redactor = Redactor([secret])
    for shown in (redactor.text(f"before {coded} after"), redactor.value({"k": [f"before {coded} after"]})["k"][0]):
        assert shown.startswith("before ")
        assert shown.endswith(" after")
        assert "***" in shown
        assert FORMS[form](secret) not in shown
        assert len(shown) < len("before  after") + len(coded) - len(secret) + 12 + 80


@pytest.mark.parametrize(
    "text",
    [
        "50% of &amp; and C:\\temp\\new + x", "a 'b' ''c''", "%zz %4 & &; &nosuch; &#0; &#x110000;",
        "\\u12 \\x1 \\U00110000 \\",
        "100%25", "+", "\\", "&", "%", "''", json.dumps({"path": "C:\\new\\table", "q": "a&b"}),
    ],
)  # fmt: skip
def test_nothing_else_is_changed(text: str) -> None:
    assert Redactor(["some-secret 'x' & y", "other\\secret"]).text(text) == text


_PRINTABLE = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])


@settings(derandomize=True)
@given(st.text(_PRINTABLE, min_size=4, max_size=12), st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(FORMS)))
def test_forms_within_forms(secret: str, inner: str, outer: str) -> None:
    secret = secret.encode("utf-8", "replace").decode()
    if "base64" in inner + outer or "YAML" in inner + outer or "*" in secret:
        return
    shown = Redactor([secret]).text(f"a {FORMS[outer](FORMS[inner](secret))} z")
    assert FORMS[outer](FORMS[inner](secret)) not in shown or "***" in shown


@pytest.mark.parametrize(
    "text",
    ["%41" * 100_000, "\\\\" * 100_000, "&amp;" * 100_000, "''" * 100_000, json.dumps(json.dumps(["x\\y"] * 20_000))],
)
def test_it_takes_no_longer_than_the_text_is(text: str) -> None:
    redactor, started = Redactor(["AAAAA&secret", "B" * 60_000]), time.process_time()
    redactor.value(text)
    assert time.process_time() - started < 20
