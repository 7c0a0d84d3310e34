"""Protobuf messages with a registry's schema, shown as ProtoJSON (https://protobuf.dev/programming-guides/json).

The data begins with a reference to the message of the schema. Confluent's serializer writes the path of indexes to the
message (a count and zigzag varints, a single 0 for the first message); Apicurio's writes a Ref message with its name.
The schema is fetched as a descriptor from registries that offer one; otherwise protoc compiles the text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from kctl.errors import NotSupported
from kctl.records.decode.protoc import compile_files
from kctl.records.decode.schema_ids import Framed
from kctl.records.decode.schema_registry import NoSchema, Schema, SchemaText

_MAIN = "kctl_main.proto"
_WELL_KNOWN = re.compile(r"google/(protobuf|type)/[a-z_]+\.proto")
_MAX_INDEXES = 100
_REF_NAME = 0x0A  # field 1, a string


def check_library() -> None:
    """Raise NotSupported if google.protobuf is not installed."""
    try:
        is_installed = find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        raise NotSupported(
            "the Protobuf library is not installed", hint="install kctl with it: pip install 'kctl[protobuf]'"
        )


def message_reader(schema: Schema, what: str) -> Callable[[Framed], Any]:
    """Return a reader for the messages of a schema. Raises NotSupported, NoSchema."""
    check_library()
    from google.protobuf.descriptor_pool import DescriptorPool

    files = _descriptors([*schema.references, schema.main._replace(name=_MAIN)], what)
    pool = DescriptorPool()
    added: set[str] = set()
    for name in files:
        _add(pool, name, files, added, what, 0)
    return _FieldReader(pool, files[_MAIN], what)


class _FieldReader:
    def __init__(self, pool: Any, file: Any, what: str) -> None:
        self._pool, self._file, self._what = pool, file, what
        self._classes: dict[str, Any] = {}

    def __call__(self, framed: Framed) -> Any:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError

        name, data = self._message(framed)
        message = self._class(name)()
        try:
            message.ParseFromString(data)
        except DecodeError:
            raise ValueError(f"it is not a message {name} of {self._what}") from None
        return MessageToDict(message, descriptor_pool=self._pool)

    def _message(self, framed: Framed) -> tuple[str, bytes]:
        """Return the full name of the message, and its bytes."""
        if framed.header_rest is not None:
            indexes, _ = _indexes(framed.header_rest) if framed.header_rest else ([0], b"")
            return self._name(indexes), framed.data
        reference = _reference(framed.data)
        if reference is not None:
            for name in (reference[0], f"{self._file.package}.{reference[0]}"):
                if name in self._names(self._file.message_type, self._file.package):
                    return name, reference[1]
        if framed.apicurio:
            return self._name([0]), framed.data
        indexes, data = _indexes(framed.data)
        return self._name(indexes), data

    def _names(self, messages: Sequence[Any], prefix: str) -> set[str]:
        names: set[str] = set()
        for message in messages:
            name = f"{prefix}.{message.name}" if prefix else str(message.name)
            names |= {name} | self._names(message.nested_type, name)
        return names

    def _name(self, indexes: Sequence[int]) -> str:
        """Return the name of the message at a path. Confluent's serializer does not count map entries."""
        messages, names = self._file.message_type, [self._file.package] if self._file.package else []
        for index in indexes:
            candidates = [each for each in messages if not each.options.map_entry]
            if not 0 <= index < len(candidates):
                raise ValueError(f"{self._what} has no message {'.'.join(map(str, indexes))}")
            names.append(candidates[index].name)
            messages = candidates[index].nested_type
        return ".".join(names)

    def _class(self, name: str) -> Any:
        if name not in self._classes:
            from google.protobuf.message_factory import GetMessageClass

            self._classes[name] = GetMessageClass(self._pool.FindMessageTypeByName(name))
        return self._classes[name]


def _indexes(data: bytes) -> tuple[list[int], bytes]:
    """Return the path to a message, and the data after it."""
    count, position = _varint(data, 0)
    if count == 0:
        return [0], data[position:]
    if not 0 < count <= _MAX_INDEXES:
        raise ValueError("it does not begin with the indexes of a message")
    indexes = []
    for _ in range(count):
        index, position = _varint(data, position)
        indexes.append(index)
    return indexes, data[position:]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise ValueError("it does not begin with the indexes of a message")


def _reference(data: bytes) -> tuple[str, bytes] | None:
    """Return the name in an Apicurio Ref before the data, and the rest; None if there is no Ref."""
    if len(data) < 3 or not 2 < data[0] < 0x80 or data[1] != _REF_NAME or data[2] != data[0] - 2:
        return None
    end = 1 + data[0]
    name = data[3:end]
    return (name.decode("ascii"), data[end:]) if len(data) >= end and name.isascii() else None


# --- descriptors -----------------------------------------------------------------------------------------------------


def _descriptors(files: Sequence[SchemaText], what: str) -> dict[str, Any]:
    """Return the descriptor of each file by the name that imports use."""
    if all(file.serialized is not None for file in files):
        parsed = {file.name: _parsed(file) for file in files}
        if all(each is not None for each in parsed.values()):
            return parsed
    return compile_files({file.name: file.text for file in files}, _MAIN, what)


def _parsed(file: SchemaText) -> Any:
    """Return a FileDescriptorProto; None for other data (a registry without this format returns the text again)."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        parsed = FileDescriptorProto.FromString(base64.b64decode(file.serialized or "", validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    parsed.name = file.name
    return parsed


def _add(pool: Any, name: str, files: dict[str, Any], added: set[str], what: str, depth: int) -> bool:
    """Add a file to the pool, after its imports. Return True if the file exists."""
    if name in added:
        return True
    file = files.get(name) or _well_known(name)
    if file is None or depth > len(files) + 20:
        return False
    added.add(name)
    # A missing import is harmless if it only defines options (confluent/meta.proto); missing types are reported below.
    present = [each for each in file.dependency if _add(pool, each, files, added, what, depth + 1)]
    missing = [each for each in file.dependency if each not in present]
    if missing:
        file = type(file).FromString(file.SerializeToString())
        file.dependency[:] = present
        file.public_dependency[:] = []
        file.weak_dependency[:] = []
    try:
        pool.Add(file)
        pool.FindFileByName(name)
    except (TypeError, KeyError, ValueError) as exc:
        imports = f"; it imports {', '.join(missing)[:100]}, which the registry does not have" if missing else ""
        raise NoSchema(f"{what} is not a Protobuf schema: {' '.join(str(exc).split())[:120]}{imports}") from None
    return True


def _well_known(name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    if name == "confluent/type/decimal.proto":
        file = FileDescriptorProto(name=name, package="confluent.type", syntax="proto3")
        message = file.message_type.add(name="Decimal")
        kinds = FieldDescriptorProto
        for number, (field, kind) in enumerate(
            (("value", kinds.TYPE_BYTES), ("precision", kinds.TYPE_UINT32), ("scale", kinds.TYPE_INT32)), 1
        ):
            message.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
        return file
    if not _WELL_KNOWN.fullmatch(name):
        return None
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError:
        return None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
