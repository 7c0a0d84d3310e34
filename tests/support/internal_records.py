"""Records of internal topics in many forms: as Kafka's generated classes write them, and damaged ones."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from java_dumps import Form
from segment_files import Rec, batch

VARIANTS = 8
_JARS = r"kafka-(group-coordinator|transaction-coordinator|share-coordinator|metadata|storage)-[0-9.]+\.jar"
_REMOTE = ("RemoteLog", "RemotePartition")
_SHARE_STATE = ("ShareSnapshot", "ShareUpdate")


class Written(NamedTuple):
    """A message written by a generated class."""

    name: str
    version: int
    data: bytes


def written(kafka_home: Path, variants: int = VARIANTS) -> list[Written]:
    """Return messages of all classes and versions."""
    libs = kafka_home / "libs"
    jars = [str(path) for path in sorted(libs.iterdir()) if re.fullmatch(_JARS, path.name)]
    source = Path(__file__).with_name("GeneratedMessages.java")
    argv = ["java", "-cp", f"{libs}/*", str(source), str(variants), *jars]
    lines = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()
    parts = (line.split("\t") for line in lines)
    return [Written(name, int(version), base64.b64decode(data)) for name, version, data in parts]


def api_keys(kafka_home: Path) -> dict[str, int]:
    """Return the numbers of record types, from the definitions in the jars."""
    from message_schemas import definitions

    return {found["name"]: found["apiKey"] for found in definitions(kafka_home) if "apiKey" in found}


def forms(kafka_home: Path) -> list[Form]:
    """Return all forms by name."""
    messages, numbers = written(kafka_home), api_keys(kafka_home)
    found = [
        *_coordinators(messages, numbers, "offsets", lambda name: name not in (*_SHARE_STATE, "TransactionLog")),
        *_coordinators(messages, numbers, "transaction-log", lambda name: name == "TransactionLog"),
        *_coordinators(messages, numbers, "share-group-state", lambda name: name in _SHARE_STATE),
        *_framed([each for each in messages if each.name.endswith("Record") and each.name in numbers], numbers),
    ]
    return [Form(f"{number}: {form.name}", form.data, form.file, form.arguments) for number, form in enumerate(found)]


def short(number: int) -> bytes:
    """Return the version that precedes a key or value."""
    return number.to_bytes(2, "big", signed=number < 0)


def varint(number: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def form(name: str, key: bytes | None, value: bytes | None, decoder: str) -> Form:
    """Return a log with one record, and a second one after it."""
    data = batch(0, [Rec(key, value)]) + batch(1, [Rec(key, None)])
    return Form(name, data, arguments=(f"--{decoder}-decoder",))


# --- keys and values with a version in front --------------------------------------------------------------------------


def _coordinators(
    messages: list[Written], numbers: dict[str, int], decoder: str, wanted: Callable[[str], bool]
) -> Iterator[Form]:
    """Yield forms of a topic's records. A key's type is the number of the record type, in 3.9 the key's version."""
    names = sorted({each.name.removesuffix("Key") for each in messages if each.name.endswith("Key")})
    names = list(filter(wanted, names))
    if not names:
        return
    for name in names:
        keys = [
            short(numbers.get(each.name, each.version)) + each.data for each in messages if each.name == f"{name}Key"
        ]
        values = [each for each in messages if each.name == f"{name}Value"]
        for key in keys:
            yield form(f"{name}: a key", key, None, decoder)
        for each in values:
            value = short(each.version) + each.data
            yield form(f"{name}: a value of version {each.version}", keys[0], value, decoder)
        last = short(values[-1].version) + values[-1].data
        yield from _broken(name, keys[-1], last, decoder)
    sample = short(2) + b"\0\1g"
    for number in (*range(9, 32), 100, 255, 256, -1, -32768, 32767):
        yield form(f"a key of type {number}", short(number) + b"\0\1g\0\1m", sample, decoder)
    yield form("a null key", None, b"value", decoder)


def _broken(name: str, key: bytes, value: bytes, decoder: str) -> Iterator[Form]:
    yield form(f"{name}: an empty key", b"", value, decoder)
    yield form(f"{name}: a key of one byte", key[:1], value, decoder)
    yield form(f"{name}: a key of its version only", key[:2], value, decoder)
    yield form(f"{name}: a key, then garbage", key + b"\0\1", value, decoder)
    yield form(f"{name}: a key that is cut", key[:-1], value, decoder)
    yield form(f"{name}: an empty value", key, b"", decoder)
    yield form(f"{name}: a value of one byte", key, value[:1], decoder)
    for size in {2, len(value) // 3, len(value) // 2, len(value) - 1}:
        yield form(f"{name}: a value of {size} bytes", key, value[:size], decoder)
    yield form(f"{name}: a value, then garbage", key, value + b"\xff\xff", decoder)
    for version in (-1, 5, 6, 99, 32767):
        yield form(f"{name}: a value of version {version}", key, short(version) + value[2:], decoder)
    if value[-1:] == b"\0":
        yield form(f"{name}: an unknown tag", key, value[:-1] + b"\1\x09\2ab", decoder)
        yield form(f"{name}: tag 0 with nothing", key, value[:-1] + b"\1\0\0", decoder)
        yield form(f"{name}: tag 0 is null", key, value[:-1] + b"\1\0\1\0", decoder)
        yield form(f"{name}: tag 0, then more", key, value[:-1] + b"\1\0\3\0ab", decoder)
        yield form(f"{name}: more tags than there are", key, value[:-1] + b"\x05", decoder)
        yield form(f"{name}: a tag that is too long", key, value[:-1] + b"\1\x09\x7fab", decoder)


# --- messages with frame version, type and version in front -----------------------------------------------------------


def _framed(messages: list[Written], numbers: dict[str, int]) -> Iterator[Form]:
    for each in messages:
        decoder = "remote-log-metadata" if each.name.startswith(_REMOTE) else "cluster-metadata"
        head = b"\1" + varint(numbers[each.name])
        yield form(f"{each.name} of version {each.version}", None, head + varint(each.version) + each.data, decoder)
    last = {each.name: each for each in messages}
    for name, each in last.items():
        decoder = "remote-log-metadata" if name.startswith(_REMOTE) else "cluster-metadata"
        yield from _broken_frames(name, numbers[name], each, decoder)
    for decoder in ("cluster-metadata", "remote-log-metadata"):
        yield form(f"{decoder}: a null value", b"k", None, decoder)
        yield form(f"{decoder}: an empty value", b"k", b"", decoder)
        for number in (99, 200, 40_000):
            yield form(f"{decoder}: type {number}", None, b"\1" + varint(number) + b"\0\0", decoder)
        for number in (0, 2, 127, 40_000):
            yield form(f"{decoder}: frame version {number}", None, varint(number) + b"\2\0\0", decoder)
        yield form(f"{decoder}: a varint that is too long", None, b"\xff" * 6, decoder)
        yield form(f"{decoder}: a varint that is cut", None, b"\1\xff", decoder)


def _broken_frames(name: str, number: int, each: Written, decoder: str) -> Iterator[Form]:
    head = b"\1" + varint(number)
    good = head + varint(each.version) + each.data
    yield form(f"{name}, with a key", b"key", good, decoder)
    yield form(f"{name}, then garbage", None, good + b"\0\1", decoder)
    yield form(f"{name} of an unknown version", None, head + varint(99) + each.data, decoder)
    yield form(f"{name} of a version that is too large", None, head + varint(40_000) + each.data, decoder)
    for size in {1, 2, len(good) // 2, len(good) - 1}:
        yield form(f"{name}, cut after {size} bytes", None, good[:size], decoder)
    if good[-1:] == b"\0":
        yield form(f"{name}, an unknown tag", None, good[:-1] + b"\1\x63\2ab", decoder)
