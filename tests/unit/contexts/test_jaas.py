"""sasl.jaas.config: what Java reads in each form of tests/data/jaas_forms.json (by client_config_forms.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl.contexts.client_properties.jaas import JaasError, LoginModule, parse_entries, parse_login_module

FORMS = json.loads((Path(__file__).parents[2] / "data" / "jaas_forms.json").read_text())
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ENTRY = f'{MODULE} required username="u" password="p";'
# Java refuses these; their meaning is clear, and people have them.
ALSO_READ = {
    f'"{ENTRY}"', f"'{ENTRY}'", '"' + ENTRY.replace('"', '\\"') + '"',
    f"KafkaClient {{ {ENTRY} }};", f"KafkaClient {{\n  {ENTRY}\n}};\n", f"KafkaClient {{ {ENTRY} }}",
}  # fmt: skip


def _as_java(module: LoginModule) -> list[str]:
    options = {key or "": value for key, value in module.options.items()}
    # Java's order of keys is that of their UTF-16 units; all of the table's are ASCII.
    return [module.name, module.flag.lower(), *(text for key in sorted(options) for text in (key, options[key]))]


def _read(text: str, *, strictly: bool) -> list[str] | None:
    try:
        if not strictly:
            return _as_java(parse_login_module(text))
        entries = parse_entries(text)
    except JaasError:
        return None
    return _as_java(entries[0]) if len(entries) == 1 else None


def test_the_table_is_large() -> None:
    assert len(FORMS) >= 300
    assert sum(form["java"] is None for form in FORMS) >= 100


def test_as_java() -> None:
    wrong = [(form["text"], form["java"], _read(form["text"], strictly=True)) for form in FORMS]
    assert [each for each in wrong if each[1] != each[2]] == []


def test_what_is_read_beyond_java() -> None:
    more = {form["text"] for form in FORMS if _read(form["text"], strictly=False) != form["java"]}
    assert more == ALSO_READ
    for text in ALSO_READ:
        assert _read(text, strictly=False) == [MODULE, "required", "password", "p", "username", "u"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ENTRY[:-1], "semicolon"),
        (f"{ENTRY} {ENTRY}", "2 login modules"),
        (f"{MODULE} username=u password=secret-pw;", "`required` is missing"),
        (f"{MODULE} required username=u password=1-secret-pw;", "an option is not"),
        ("", "no login module"),
        (f"KafkaClient {{ {ENTRY} {ENTRY} }};", "2 login modules"),
        (f"KafkaServer {{ {ENTRY} }};", "braces that are not one section"),
        (f"kafkaclient {{ {ENTRY} }};", "braces that are not one section"),
        (f"KafkaClient {{ {ENTRY} }}; Client {{ {ENTRY} }};", "braces that are not one section"),
        (f"{ENTRY} }};", "braces that are not one section"),
        (f"'KafkaServer {{ {ENTRY} }};'", "braces that are not one section"),
        (f'{MODULE} required username="{{u}}" password=1-secret-pw;', "an option is not"),
    ],
)
def test_what_is_wrong_is_said_without_a_secret(text: str, says: str) -> None:
    with pytest.raises(JaasError, match=says) as caught:
        parse_login_module(text)
    assert "secret" not in str(caught.value)


def test_many_quotes_around_each_other_end() -> None:
    with pytest.raises(JaasError):
        parse_login_module('"' * 5000)
