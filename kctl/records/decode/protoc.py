"""Descriptors of .proto texts, compiled by protoc (from grpcio-tools) in a temporary directory.

The texts and file names come from a registry: only relative names without `..` are accepted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kctl.errors import NotSupported
from kctl.records.decode.schema_registry import NoSchema

_COMPILE_S = 20
_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]{0,200}")
# Files that are built into Confluent's serializers. They define only options and one type.
_CONFLUENT = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
""",
}


def compile_files(texts: dict[str, str], main: str, what: str) -> dict[str, Any]:
    """Return the descriptors of a file and of its imports by name. Raises NotSupported without protoc, NoSchema."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    if find_spec("grpc_tools") is None:
        raise NotSupported(
            "the registry returns Protobuf schemas as text, and protoc is not installed",
            hint="install kctl with it: pip install 'kctl[protobuf]'",
        )
    with tempfile.TemporaryDirectory(prefix="kctl-protoc-") as folder:
        for name, text in {**_CONFLUENT, **texts}.items():
            if not _NAME.fullmatch(name):
                raise NoSchema(f"{what} refers to a file with an unsafe name: {name[:80]!r}")
            path = Path(folder, "in", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        out = Path(folder, "descriptors")
        argv = [
            sys.executable, "-I", "-m", "grpc_tools.protoc", f"-I{folder}/in", f"--descriptor_set_out={out}",
            "--include_imports", main,
        ]  # fmt: skip
        try:
            process = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMPILE_S, check=False, cwd=folder
            )
        except subprocess.TimeoutExpired:
            raise NoSchema(f"{what}: protoc took more than {_COMPILE_S} s") from None
        if process.returncode != 0:
            message = process.stderr.decode("utf-8", "replace").replace(main, "line")
            raise NoSchema(f"{what} is not a Protobuf schema: {' '.join(message.split())[:150]}")
        return {file.name: file for file in FileDescriptorSet.FromString(out.read_bytes()).file}
