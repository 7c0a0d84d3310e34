"""Forms of sasl.jaas.config and of .properties files, and how Java parses them.

    python tests/support/client_config_forms.py LIBS_OF_KAFKA

parses them with Java (kafka-clients and java.util.Properties) and writes jaas_forms.json and properties_forms.json in
tests/data.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "data"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def jaas_forms() -> list[str]:
    """Return the texts, without duplicates."""
    return list(dict.fromkeys(_jaas_forms()))


def _jaas_forms() -> Iterator[str]:
    good = f'{PLAIN} required username="u" password="p";'
    yield good
    for flag in (
        "REQUIRED",
        "Required",
        "requisite",
        "Sufficient",
        "OPTIONAL",
        "needed",
        '"required"',
        "'optional'",
        "",
    ):
        yield f'{PLAIN} {flag} username="u" password="p";'
    for module in (
        SCRAM, f"kafkashaded.{PLAIN}", f"org.example.shaded.{SCRAM}", f'"{PLAIN}"', f"'{SCRAM}'", "a-b.C_d$e",
        "Modul\u00e9",
        "1.Module", "-Module", ".Module", "org/apache/Module", '""', "\u00a0Module", "M\u20ac", "M\U0001f600", "a:b",
        "",
    ):  # fmt: skip
        yield f'{module} required username="u" password="p";'
    for value in (
        "pw", "p-w", "p_w", "p$w", "$pw", "p.w", "p1", "1p", "123", "-1", "-", "--", ".5", "1.5", "1.2.3", "-x",
        "_x", "p;w",
        "p=w", "p w", "p\\nw", "p/w", "p//w", "p/*w*/x", "p@w", "p#w", "p!w", "p:w", "p,w", "p+w", "p%w", "p{w}",
        "p\u00e9",
        "\u00e9", "\u20ac", "\u0080x", "\u009fx", "x\u0085y", "\u00a0", "\x7fx", "p'w", 'p"w', "'", '"', "",
    ):  # fmt: skip
        yield f"{PLAIN} required username=u password={value};"
        yield f"{PLAIN} required username=u password={value} ;"
    for quoted in (
        "", "p w", "p;w", "p=w", "p//w", "p/*w*/", "p'w", r"p\"w", r"p\'w", r"p\\w", r"p\\", r"\a\b\f\n\r\t\v",
        r"\q\z\:",
        r"\0", r"\7", r"\12", r"\101", r"\377", r"\400", r"\477", r"\8", r"\18", r"\128", r"\1234", r"\u0041", r"\x41",
        "p\u00e9", "\u20ac", "\U0001f600", "p\tw", "p{w}", "${x}", "p\\\nw", "p\nw", "p\rw", "#", "// no", "a\\",
    ):  # fmt: skip
        yield f'{PLAIN} required username="u" password="{quoted}";'
        yield f"{PLAIN} required username='u' password='{quoted}';"
    for comment in (
        "// c\n", "// c", "/* c */", "/* c\n d */", "/**/", "/*/", "/* c", "/ c\n", "/\nc\n", "# c\n", "/* ; */",
        "// ;\n",
        "/*\r\n*/", "/* * / */", "/***/", "//\r", "/*//*/", "//*\n",
    ):  # fmt: skip
        yield f'{comment}{PLAIN} required username="u" password="p";'
        yield f'{PLAIN} required {comment}username="u" password="p";'
        yield f'{PLAIN} required username="u" password={comment}"p";'
        yield f'{PLAIN} required username="u" password="p"{comment};'
        yield f"{good}{comment}"
    for options in (
        'username="u"', 'username="u" password', 'username="u" password=', '"username"="u" "password"="p"',
        "'username'='u' 'password'='p'", 'username = "u" password = "p"', 'username="u"password="p"',
        'username="u",password="p"', 'username="u" ; password="p"', 'username="u" username="v" password="p"',
        'Username="u" Password="p"', '1="x" username="u" password="p"', '-="x" username="u"', '="x"',
        '{}="x" username="u"',
        'tokenauth="true" username="u" password="p"', 'tokenauth=true username="u" password="p"',
        'a.b="c" username="u"',
        'a-b="c"', 'a_b="c"', '$a="c"', 'username=="u"', 'username="u" password="p" extra', '"" ="x"', 'user name="u"',
        'username="u\npassword="p"', 'username="u\npassword="p"\n', "username=u\r\npassword=p",
        "username=u\tpassword=p",
        'serviceName="kafka" useKeyTab=true keyTab="/etc/k" principal="a/b@C"', "username=\x00u\x01 password=\x1fp",
    ):  # fmt: skip
        yield f"{PLAIN} required {options};"
    yield from (
        "", " ", ";", ";;", good[:-1], f"{good};", f"{good} {good}", f"{good}\n", f"  {good}  ", f"{good} ;",
        f"{PLAIN};",
        f"{PLAIN} required;", f"{PLAIN} required ;", PLAIN, f"{PLAIN} required", f"required {PLAIN};", f'"{good}"',
        f"'{good}'", f"KafkaClient {{ {good} }};", f"KafkaClient {{\n  {good}\n}};\n", f"KafkaClient {{ {good} }}",
        f"{{ {good} }};", f"KafkaServer {{ {good} }};", good.replace('"', '\\"'), '"' + good.replace('"', '\\"') + '"',
        f"\ufeff{good}", good.replace(" ", "\u00a0"), good.replace(" ", "\n"), good.replace(" ", "\r\n"),
        f"{SCRAM} required\n  username='u'\n  password=p ;", f"({good})", f"[{good}]", f"<{good}>",
        f"sasl.jaas.config={good}", f"KafkaClient {{ {good} {good} }};",
    )  # fmt: skip


def properties_forms() -> list[bytes]:
    """Return the bytes of files, without duplicates. None has a key twice, which kctl rejects."""
    return list(dict.fromkeys(_properties_forms()))


def _properties_forms() -> Iterator[bytes]:
    for separator in ("=", ":", " ", "\t", "\f", " = ", " : ", " =: ", "==", "::", "=:", " \t=\t ", "  ", ""):
        for value in ("v", "", " v", "v ", "a b", "a=b", "a:b"):
            yield f"k{separator}{value}\n".encode("latin-1")
    for end in ("\n", "\r\n", "\r", "\n\n", "\r\r", "\n\r", ""):
        yield f"a=1{end}b=2{end}".encode() if end else b"a=1"
        yield f"a=1\\{end}b=2{end}".encode()
        yield f"a=1\\{end}  \t\f b=2{end}".encode()
        yield f"a=1\\{end}#b=2{end}c=3".encode()
        yield f"# c\\{end}b=2{end}".encode()
        yield f"a=1\\{end}{end}b=2{end}".encode()
        yield f"\\{end}a=1{end}".encode()
        yield f"a\\{end}b=1{end}".encode()
        yield f"a=\\{end}  1{end}".encode()
    for slashes in range(1, 6):
        yield b"a=1" + b"\\" * slashes + b"\nb=2\n"
        yield b"a" + b"\\" * slashes + b"=1\n"
        yield b"a=1" + b"\\" * slashes
    for escape in (r"\t", r"\n", r"\r", r"\f", r"\\", r"\:", r"\=", r"\ ", r"\#", r"\!", r"\a", r"\0", r"\"", r"\'",
        r"\u0041",
                   r"\u00e9", r"\u20AC", r"\ud83d\ude00", r"\ud83d", r"\uuu0041", r"\u12", r"\u", r"\uXYZW", r"\U0041",
                   r"\u004", r"\u0041B", "\\\u00e9"):  # fmt: skip
        yield f"a{escape}b=1\n".encode("latin-1")
        yield f"a=x{escape}y\n".encode("latin-1")
        yield f"a={escape}\n".encode("latin-1")
        yield f"{escape}=1\n".encode("latin-1")
    for comment in (
        "# c",
        "! c",
        "  # c",
        "\t! c",
        "\f# c",
        "a=1 # c",
        "a=1 ! c",
        "a#b=1",
        "#a=1",
        "!a=1",
        "\\#a=1",
        "\u00a0#a=1",
    ):
        yield f"{comment}\nb=2\n".encode("latin-1")
    yield from (
        b"", b"\n", b"   \n", b"a", b"a\n", b"=", b"=v\n", b":v\n", b" = v\n", b"\x0b=v\n", b"a\x0b=v\n", b"\x1ca=1\n",
        b"a=\x85b\n", b"a=1\x0cb=2\n", b"a=1\x1eb=2\n", b"a=\xe9\n", b"a=\xff\xfe\n", b"\xe9=1\n", b"a=\xa0b\n",
        b"\xa0a=1\n",
        b"\\", b"\\\n", b"a=1\n\\", b"a=1\n\\\n", b"  \\\n  \nb=2\n", b"a=1\x1a\n", b"a=\x01\x02\n",
        b"long=" + b"x" * 9000 + b"\n", b"k" * 9000 + b"=v\n", b"a = 1 \\\n  , 2 \\\n  , 3\n",
    )  # fmt: skip


def ask_java(libs: str, kind: str, forms: list[bytes]) -> list[list[str] | None]:
    """Return Java's result for each form; None if Java rejects the form."""
    argv = ["java", "-cp", f"{libs}/*", str(Path(__file__).with_name("ClientConfigForms.java"))]
    lines = "".join(f"{kind} {base64.b64encode(form).decode()}\n" for form in forms)
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(forms), done.stderr
    return [
        None if each == "refused" else [_text(part) for part in each.split(" ") if part != "ok"] for each in answers
    ]


def _text(part: str) -> str:
    return base64.b64decode(part.removeprefix("=")).decode("utf-16-be", "surrogatepass")


def main(libs: str) -> None:
    jaas = jaas_forms()
    rows: list[Any] = [
        {"text": text, "java": answer}
        for text, answer in zip(jaas, ask_java(libs, "jaas", [each.encode() for each in jaas]), strict=True)
    ]
    _write("jaas_forms.json", rows)
    files = properties_forms()
    rows = [
        {"bytes": data.decode("latin-1"), "java": answer}
        for data, answer in zip(files, ask_java(libs, "properties", files), strict=True)
    ]
    _write("properties_forms.json", rows)


def _write(name: str, rows: list[Any]) -> None:
    lines = ",\n".join(json.dumps(row) for row in rows)
    (DATA / name).write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
