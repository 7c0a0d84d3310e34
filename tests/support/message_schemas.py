"""Write message_schemas.json and message_schemas_4.json of kctl/segment/format from the definitions in Kafka's jars.

    python tests/support/message_schemas.py KAFKA_3_9_HOME KAFKA_4_HOME

The first has those of 3.9, which its DumpLogSegments supports; the second those of Kafka 4 that are new or differ.

A definition is reduced to its interface: names, types, versions, tags and defaults. share_group_messages.json
beside this file is added: the records of __share_group_state in Kafka 4.1 and later (KIP-932, KIP-1226), which are not
in the jars. 4.0, where share groups were a preview, wrote other records with the same version.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

_OUT = Path(__file__).parents[2] / "kctl" / "segment" / "format" / "message_schemas.json"
JARS = {
    "kafka-clients": r"(ConsumerProtocol(Subscription|Assignment)|VotersRecord|KRaftVersionRecord|Snapshot\w+Record)",
    "kafka-group-coordinator": r"\w+",
    "kafka-transaction-coordinator": r"\w+",
    "kafka-metadata": r"\w+Record",
    "kafka-storage": r"Remote\w+",
}
LATER = Path(__file__).with_name("share_group_messages.json")
_OUT_4 = _OUT.with_name("message_schemas_4.json")
_KEPT = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default")


def definition(text: str) -> dict[str, Any]:
    """Return the fields of a message, with common structs expanded where they are used."""
    found = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    structs = {struct["name"]: struct["fields"] for struct in found.get("commonStructs", [])}
    kept = {key: found[key] for key in ("apiKey", "validVersions", "flexibleVersions") if key in found}
    return {"name": found["name"], **kept, "fields": [_field(field, structs) for field in found["fields"]]}


def _field(field: dict[str, Any], structs: dict[str, Any]) -> dict[str, Any]:
    kept = {key: field[key] for key in _KEPT if key in field}
    inner = field.get("fields") or structs.get(field["type"].removeprefix("[]"))
    if inner:
        kept["fields"] = [_field(each, structs) for each in inner]
    return kept


def definitions(kafka_home: Path) -> list[dict[str, Any]]:
    """Return the messages of a release."""
    libs = kafka_home / "libs"
    messages = []
    for jar, wanted in JARS.items():
        (path,) = libs.glob(f"{jar}-[0-9]*.jar")
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.endswith(".json") and re.fullmatch(wanted, Path(n).stem)]
            messages += [definition(archive.read(name).decode()) for name in sorted(names)]
    return messages


def main() -> None:
    """Read the jars and write the files."""
    messages, later = (definitions(Path(home)) for home in sys.argv[1:3])
    messages += [definition(json.dumps(found)) for found in json.loads(LATER.read_text(encoding="utf-8"))]
    known = {message["name"]: message for message in messages}
    _write(_OUT, messages)
    _write(
        _OUT_4,
        [message for message in later if _without_number(message) != _without_number(known.get(message["name"], {}))],
    )


def _without_number(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "apiKey"}


def _write(path: Path, messages: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(message, separators=(",", ":")) for message in messages)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
