"""The output of Kafka's DumpLogSegments for many small files, recorded as test data.

    python tests/support/java_dumps.py KAFKA_HOME [NAME…]

runs Kafka's tool over the forms of the modules in SOURCES, and writes tests/data/java_dumps. groups_4 is not from
the tool, but from internal_records.later_forms with Kafka 4, without stdout.
"""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "java_dumps"
SOURCES = {"wrappers": "old_wrappers", "txnindex": "txn_indexes", "internal": "internal_records"}


@dataclass(frozen=True)
class Form:
    """A file for Kafka's tool. file: its name, which has the type; arguments: besides --files."""

    name: str
    data: bytes
    file: str = "00000000000000000000.log"
    arguments: tuple[str, ...] = ("--print-data-log",)


@dataclass(frozen=True)
class Dump:
    """A form with the output of Kafka's tool. exception: None if the tool succeeded."""

    form: Form
    stdout: bytes
    exception: str | None


def run(kafka_home: Path, forms: Sequence[Form]) -> list[Dump]:
    """Run all forms in one JVM. The tool runs in the file's folder, so that it prints no path."""
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for number, form in enumerate(forms):
            path = Path(folder, str(number), form.file)
            path.parent.mkdir()
            path.write_bytes(form.data)
            lines.append("\t".join((*form.arguments, "--files", f"{number}/{form.file}")))
        script = Path(folder, "script")
        script.write_text("\n".join(lines), encoding="utf-8")
        source = Path(__file__).with_name("DumpLogs.java")
        argv = ["java", "-Xmx512M", "-cp", f"{kafka_home}/libs/*", str(source), str(script)]
        done = subprocess.run(argv, capture_output=True, cwd=folder, timeout=900, check=True)
    dumps = []
    for number, (form, line) in enumerate(zip(forms, done.stdout.decode().splitlines(), strict=True)):
        failed, stdout, _ = (base64.b64decode(part) for part in line.split("\t"))
        stdout = stdout.replace(f"Dumping {number}/".encode(), b"Dumping ")
        dumps.append(Dump(form, stdout, failed.decode() or None))
    return dumps


def save(name: str, dumps: Sequence[Dump]) -> None:
    """Write the dumps, one per line."""
    DATA.mkdir(exist_ok=True)
    lines = (json.dumps(_plain(dump), ensure_ascii=False) for dump in dumps)
    with gzip.GzipFile(DATA / f"{name}.jsonl.gz", "wb", mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def load(name: str) -> list[Dump]:
    """Return the dumps that `save` wrote."""
    lines = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
    return [_dump(json.loads(line)) for line in lines]


def _plain(dump: Dump) -> dict[str, Any]:
    form = dump.form
    return {
        "name": form.name,
        "file": form.file,
        "arguments": list(form.arguments),
        "data": base64.b64encode(form.data).decode(),
        "stdout": base64.b64encode(dump.stdout).decode(),
        "exception": dump.exception,
    }


def _dump(plain: dict[str, Any]) -> Dump:
    data = base64.b64decode(plain["data"])
    form = Form(plain["name"], data, plain["file"], tuple(plain["arguments"]))
    return Dump(form, base64.b64decode(plain["stdout"]), plain["exception"])


def main() -> None:
    """Write the requested files, or all."""
    home, names = Path(sys.argv[1]), sys.argv[2:] or SOURCES
    for name in names:
        dumps = run(home, importlib.import_module(SOURCES[name]).forms(home))
        save(name, dumps)
        failed = sum(dump.exception is not None for dump in dumps)
        sys.stdout.write(f"{name}: {len(dumps)} forms, {failed} exceptions\n")


if __name__ == "__main__":
    main()
