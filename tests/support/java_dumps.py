"""The output of Kafka's DumpLogSegments for many small files, recorded as test data.

    python tests/support/java_dumps.py KAFKA_HOME [NAME…]

runs Kafka's tool over the forms of the modules in SOURCES, and over the cases of tests/data/segments, and writes
tests/data/java_dumps/NAME-RELEASE.jsonl.gz. What 3.9 prints for the cases is in tests/data/segments.
"""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from message_schemas import release_of

DATA = Path(__file__).parents[1] / "data" / "java_dumps"
SOURCES = {
    "wrappers": "old_wrappers",
    "txnindex": "txn_indexes",
    "internal": "internal_records",
    "control": "control_records",
}


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
        printed = run_tool(kafka_home, lines, Path(folder))
    return [
        Dump(form, each.stdout.replace(f"Dumping {number}/".encode(), b"Dumping "), each.exception)
        for number, (form, each) in enumerate(zip(forms, printed, strict=True))
    ]


class Printed(NamedTuple):
    """What a run of Kafka's tool printed."""

    exception: str | None
    stdout: bytes
    stderr: bytes


def run_tool(kafka_home: Path, lines: Sequence[str], folder: Path) -> list[Printed]:
    """Run the tool in `folder` for each line of arguments separated by tabs, in one JVM."""
    source = Path(__file__).with_name("DumpLogs.java")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as script:
        script.write("\n".join(lines))
        script.flush()
        argv = ["java", "-Xmx512M", "-cp", f"{kafka_home}/libs/*", str(source), script.name]
        done = subprocess.run(argv, capture_output=True, cwd=folder, timeout=900, check=True)
    parts = ([base64.b64decode(part) for part in line.split("\t")] for line in done.stdout.decode().splitlines())
    return [Printed(failed.decode() or None, stdout, stderr) for failed, stdout, stderr in parts]


def save_cases(kafka_home: Path) -> int:
    """Run the cases of tests/data/segments with another release than 3.9, and write their output. Return their number.

    The absolute path of the folder becomes @GOLDEN@, as in cases.json.
    """
    cases = json.loads((DATA.with_name("segments") / "cases.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as copy:  # the tool creates files
        folder = Path(shutil.copytree(DATA.with_name("segments"), Path(copy, "segments")))
        printed = run_tool(kafka_home, ["\t".join(case["args"]) for case in cases], folder)
    lines = [
        json.dumps(
            {
                "args": case["args"],
                "exception": each.exception,
                "stdout": _text(each.stdout, folder),
                "stderr": _text(each.stderr, folder),
            }
        )
        for case, each in zip(cases, printed, strict=True)
    ]
    _write(f"cases-{release_of(kafka_home)}", lines)
    return len(lines)


def _text(data: bytes, folder: Path) -> str:
    return base64.b64encode(data.replace(str(folder).encode(), b"@GOLDEN@")).decode()


def load_cases(release: str) -> list[dict[str, Any]]:
    """Return the cases that `save_cases` wrote, with stdout and stderr as bytes."""
    cases = [json.loads(line) for line in _lines(f"cases-{release}")]
    for case in cases:
        case |= {name: base64.b64decode(case[name]) for name in ("stdout", "stderr")}
    return cases


def save(name: str, release: str, dumps: Sequence[Dump]) -> None:
    """Write the dumps, one per line."""
    _write(f"{name}-{release}", [json.dumps(_plain(dump), ensure_ascii=False) for dump in dumps])


def _write(name: str, lines: Sequence[str]) -> None:
    DATA.mkdir(exist_ok=True)
    with gzip.GzipFile(DATA / f"{name}.jsonl.gz", "wb", mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def _lines(name: str) -> list[str]:
    return gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()


def load(name: str, release: str) -> list[Dump]:
    """Return the dumps that `save` wrote."""
    return [_dump(json.loads(line)) for line in _lines(f"{name}-{release}")]


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
    home, names = Path(sys.argv[1]), sys.argv[2:] or [*SOURCES, "cases"]
    release = release_of(home)
    for name in names:
        if name == "cases":
            sys.stdout.write(f"{name}: {save_cases(home)} runs\n")
            continue
        dumps = run(home, importlib.import_module(SOURCES[name]).forms(home))
        save(name, release, dumps)
        failed = sum(dump.exception is not None for dump in dumps)
        sys.stdout.write(f"{name}: {len(dumps)} forms, {failed} exceptions\n")


if __name__ == "__main__":
    main()
