"""Values with config providers, and the results of Kafka's own providers.

    python tests/support/config_provider_forms.py LIBS_OF_KAFKA

evaluates them with Java and writes tests/data/config_provider_forms.json. DIR stands for a folder with FILES.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "config_provider_forms.json"
ENVIRONMENT = {"KCTL_A": "alpha", "KCTL_EMPTY": "", "KCTL_BLANK": " b ", "KCTL_REF": "${env:KCTL_A}", "KCTL_E": "é€"}

FILES: dict[str, bytes] = {
    "ops.properties": (
        b"password=s3cret\nempty=\nblank.end=x  \n  lead = y\nref=${env:KCTL_A}\nwith\\ blank=b\nwith\\:colon=c\n"
        b"escaped=\\u0041\\t\\\\\nlong=a \\\n   b\n!note=1\n#note=2\n=nameless\ntwo=1:2\ncolon:v\n"
    ),
    "crlf.properties": b"password=s3cret\r\nnext=n\r\n",
    "bom.properties": b"\xef\xbb\xbfpassword=s3cret\nnext=n\n",
    "utf8.properties": "password=pä€ß\nkä=v\n".encode(),
    "latin.properties": b"password=p\xe4\n",
    "twice.properties": b"password=first\npassword=second\n",
    "bad-escape.properties": b"password=a\\u12\n",
    "empty.properties": b"",
    "a b.properties": b"password=s3cret\n",
    "a:b.properties": b"password=s3cret\n",
    "mounted/password": b"s3cret",
    "mounted/newline": b"s3cret\n",
    "mounted/crlf": b"s3cret\r\n",
    "mounted/cr": b"s3cret\r",
    "mounted/lines": b"one\ntwo\n",
    "mounted/newlines": b"s3cret\n\n",
    "mounted/empty": b"",
    "mounted/blanks": b" s3cret ",
    "mounted/utf8": "pä€".encode(),
    "mounted/latin": b"p\xe4",
    "mounted/bom": b"\xef\xbb\xbfs3cret",
    "mounted/nul": b"a\x00b",
    "mounted/.hidden": b"h",
    "mounted/tls.key": b"k",
    "mounted/a b": b"blank",
    "mounted/a:b": b"colon",
    "mounted/sub/inner": b"i",
    "other/password": b"other",
}
LINKS = {"mounted/link": "password", "mounted/outside": "../other/password", "mounted/dangling": "absent",
         "linked": "mounted", "link.properties": "ops.properties"}  # fmt: skip


def make_folder(folder: Path) -> None:
    """Create FILES and LINKS in a folder."""
    for name, data in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    for name, target in LINKS.items():
        (folder / name).symlink_to(target)


def forms() -> list[tuple[str, str, str]]:
    """Return (value, allowed.paths, allowlist.pattern), without duplicates."""
    return list(dict.fromkeys(_forms()))


def _forms() -> Iterator[tuple[str, str, str]]:
    for value in _values():
        yield value, "", ""
    for paths in (
        "DIR", "DIR/", "DIR/.", "DIR/mounted", "DIR/other", "DIR/other,DIR", "DIR/other, DIR", " DIR ", "DIR,", ",DIR",
        "DIR/mounted/..", "DIR/linked", "DIR/absent", "DIR/ops.properties", "relative", "DIR/mount", "/", ",", " ",
    ):  # fmt: skip
        yield "${file:DIR/ops.properties:password}", paths, ""
        yield "${file:DIR/mounted/../ops.properties:password}", paths, ""
        yield "${directory:DIR/mounted:password}", paths, ""
        yield "${directory:DIR/linked:password}", paths, ""
        yield "${directory:DIR/other/../mounted:password}", paths, ""
        yield "${directory:DIR/mounted:outside}", paths, ""
    for pattern in (
        "KCTL_.*", "KCTL_", "KCTL_A", "_A", ".*_A", "kctl_.*", "(?i)kctl_.*", "OTHER", ".*", "[", "KCTL_A|OTHER",
        "OTHER|KCTL_A", "KCTL_.", "\\w+", "\\p{Upper}+_A", "KCTL_A ", " KCTL_A", "KCTL_A$", "^KCTL_A$",
    ):  # fmt: skip
        yield "${env:KCTL_A}", "", pattern


def _values() -> Iterator[str]:
    yield from ("", "x", " x ", "$", "$$", "${", "}", "${}", "${:}", "${::}", "${:::}", "{}", "$ {env:KCTL_A}", "a$b")
    for provider in ("env", "file", "directory", "vault", "ENV", "File", " env", "env ", ""):
        yield from (f"${{{provider}}}", f"${{{provider}:}}", f"${{{provider}::}}", f"${{{provider}:KCTL_A}}",
                    f"${{{provider}::KCTL_A}}", f"${{{provider}:x:KCTL_A}}")  # fmt: skip
    good = "${env:KCTL_A}"
    yield from (
        good, good * 2, f"x{good}", f"{good}x", f"a{good}b{good}c", f"${good}", f"\\{good}", f"{good}}}", f"{{{good}}}",
        "${env:KCTL_A", "$env:KCTL_A}", f" {good} ", f"x\n{good}\ny", "${env:\nKCTL_A}", "${env:KCTL_A\n}",
        "${env: KCTL_A}", "${env:KCTL_A }", "${env :KCTL_A}", "${ env:KCTL_A}", "${env: :KCTL_A}", "${env:KCTL_A:}",
        "${env:KCTL_A:-default}", "${env:KCTL_ABSENT}", "${env:KCTL_ABSENT:-default}", "${env:KCTL_EMPTY}",
        "${env:KCTL_BLANK}", "${env:KCTL_REF}", "${env:KCTL_E}", "${env:kctl_a}", "${env:${env:KCTL_A}}",
        f"{good}${{env:KCTL_ABSENT}}", f"{good}${{vault:x}}", f"${{vault:x}}{good}", "€${env:KCTL_E}ä", f"#{good}",
        f"{good}${{", f"$${good}$$", "${env:KCTL_A}${file:DIR/ops.properties:password}",
    )  # fmt: skip
    for name in ("ops", "crlf", "bom", "utf8", "latin", "twice", "bad-escape", "empty", "absent", "a b", "a:b", "link"):
        for key in ("password", "next"):
            yield f"${{file:DIR/{name}.properties:{key}}}"
    for key in (
        "empty", "blank.end", "lead", " lead", "ref", "with blank", "with:colon", "with\\:colon", "escaped", "long",
        "note", "!note", "#note", "", "two", "colon", "PASSWORD", "password ", " password", "absent", "a:b", "}",
    ):  # fmt: skip
        yield f"${{file:DIR/ops.properties:{key}}}"
    yield from (
        "${file:DIR/utf8.properties:kä}", "${file:DIR:password}", "${file:DIR/mounted:password}",
        "${file:DIR/ops.properties}",
        "${file: DIR/ops.properties:password}", "${file:DIR/ops.properties :password}", "${file:~/x:password}",
        "${file:DIR//ops.properties:password}", "${file:DIR/./ops.properties:password}", "${file:DIR/\x00:password}",
        "${file:DIR/ops.properties:password}${file:DIR/ops.properties:empty}${file:DIR/ops.properties:two}",
        "${file:DIR/ops.properties:password}${file:DIR/absent.properties:x}", "${file:/dev/null:password}",
    )  # fmt: skip
    for name in (
        *(Path(each).name for each in FILES if each.startswith("mounted/") and each.count("/") == 1),
        "link", "outside", "dangling", "sub", "sub/inner", "../other/password", ".", "..", "", "absent", "PASSWORD",
        "./password", "DIR/mounted/password", " password", "password ",
    ):  # fmt: skip
        yield f"${{directory:DIR/mounted:{name}}}"
    yield from (
        "${directory:DIR/mounted/:password}", "${directory:DIR/linked:password}", "${directory:DIR/absent:password}",
        "${directory:DIR/ops.properties:password}", "${directory:DIR/mounted/password:password}",
        "${directory:DIR/mounted:password}${directory:DIR/other:password}", "${directory:DIR/mounted}",
        "${directory:DIR/mounted/sub/..:password}", "${directory:DIR/mounted/sub:inner}",
    )  # fmt: skip


def ask_java(libs: str, folder: Path) -> list[str]:
    """Return "=" and the value, or "!" and the exception, for each form. DIR stands for the folder in both."""
    argv = ["java", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8", "-cp", f"{libs}/*",
            str(Path(__file__).with_name("ConfigProviderForms.java"))]  # fmt: skip
    lines = "".join(
        " ".join(base64.b64encode(text.replace("DIR", str(folder)).encode()).decode() for text in form) + "\n"
        for form in forms()
    )
    env = {**os.environ, **ENVIRONMENT, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=True, env=env)
    answers = [line for line in done.stdout.splitlines() if line[:1] in {"=", "!"}]  # other lines are log output
    assert len(answers) == len(forms()), done.stderr
    return [
        "=" + base64.b64decode(each[1:]).decode().replace(str(folder), "DIR") if each[0] == "=" else each
        for each in answers
    ]


def main(libs: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_folder(Path(folder))
        rows = [[*form, answer] for form, answer in zip(forms(), ask_java(libs, Path(folder)), strict=True)]
    DATA.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
