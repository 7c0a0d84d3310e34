"""The runs in docs/playbooks.md: its playbooks in a folder, and the output of their commands on a cluster.

`python tests/support/playbook_page.py HOST:PORT` writes their current output.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import transcripts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "playbooks.md"
KIND = "console cluster"  # blocks that need one
TOPIC = "payments-eu"
_LIMIT_S = 300.0
_FILE = re.compile(r"^<!-- playbook: (\S+) -->\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIRST = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Parts that differ from run to run and from machine to machine.
_CHANGING = [
    (re.compile(r"\b\d{8}T\d{6}\.\d{3}Z-\d+"), "RUN"),
    (re.compile(r"\(cluster [\w-]+\)"), "(cluster ID)"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:ms|s|m)\b"), "TIME"),
    (re.compile(r" {2,}"), " "),
]


def playbooks(text: str) -> dict[str, str]:
    """Return the playbooks on the page that its commands run, by file."""
    first = _FIRST.search(text)
    assert first is not None
    return {"add-topic.yaml": first[1], **dict(_FILE.findall(text))}


def printed(text: str, bootstrap: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the page with the output of its commands on that cluster, which is the context dev."""
    for name, body in playbooks(text).items():
        (folder / name).write_text(body)
    config = folder / "config.yaml"
    contexts = {"dev": {"bootstrap_servers": bootstrap.split(",")}}
    config.write_text(json.dumps({"current_context": "dev", "contexts": contexts}))
    given = {**environment, "HOME": str(folder), "KCTL_CONFIG": str(config)}
    try:
        return transcripts.run(text, folder, given, KIND, timeout_s=_LIMIT_S)
    finally:
        subprocess.run(
            ["kctl", "topic", "delete", TOPIC, "--yes", "--if-exists"], env=given, capture_output=True, check=False
        )


def settled(text: str) -> str:
    """Return the text without parts that differ from run to run."""
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text


def main() -> None:
    """Regenerate the page."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KCTL_", "XDG_"))}
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(printed(PAGE.read_text(), sys.argv[1], Path(folder), {**kept, "PATH": path}))


if __name__ == "__main__":
    main()
