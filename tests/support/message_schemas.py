"""Write kctl/segment/format/messages_RELEASE.json from the message definitions in Kafka's jars.

    python tests/support/message_schemas.py KAFKA_HOME…

writes the file of each home's release (kctl.segment.format.release). A definition is reduced to its interface:
names, types, versions, tags and defaults.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

_OUT = Path(__file__).parents[2] / "kctl" / "segment" / "format"
# The definitions of what log files contain, by jar. A release need not have every jar.
JARS = {
    "kafka-clients": (
        r"ConsumerProtocol(Subscription|Assignment)|VotersRecord|KRaftVersionRecord|Snapshot\w+Record"
        r"|LeaderChangeMessage"
    ),
    "kafka-group-coordinator": r"\w+",
    "kafka-transaction-coordinator": r"\w+",
    "kafka-share-coordinator": r"\w+",
    "kafka-metadata": r"\w+Record",
    "kafka-storage": r"Remote\w+",
    "kafka-raft": r"QuorumStateData",
}
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


def release_of(kafka_home: Path) -> str:
    """Return the release of the jars, e.g. 4.4."""
    (path,) = (kafka_home / "libs").glob("kafka-clients-[0-9]*.jar")
    return ".".join(path.stem.removeprefix("kafka-clients-").split(".")[:2])


def definitions(kafka_home: Path) -> list[dict[str, Any]]:
    """Return the messages of a release."""
    messages = []
    for jar, wanted in JARS.items():
        for path in (kafka_home / "libs").glob(f"{jar}-[0-9]*.jar"):
            with zipfile.ZipFile(path) as archive:
                names = [n for n in archive.namelist() if n.endswith(".json") and re.fullmatch(wanted, Path(n).stem)]
                messages += [definition(archive.read(name).decode()) for name in sorted(names)]
    return messages


def main() -> None:
    """Read the jars and write the files."""
    for home in map(Path, sys.argv[1:]):
        lines = ",\n".join(json.dumps(message, separators=(",", ":")) for message in definitions(home))
        (_OUT / f"messages_{release_of(home)}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
