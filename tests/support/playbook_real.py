"""A playbook on a real cluster: its effects, the final state, and the kctl that runs it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_forks import KILLED_AT
from kctl_testing import Kctl, Result, TestCluster

# Each kind of step that changes something. `load` and `tell` must not run twice.
PLAYBOOK = """\
playbook: 1
name: real
description: Topics, a config, records.
parameters:
  topic: {}
  most: {type: integer, default: 3600000}
steps:
- id: make
  topic.create: {names: ["{{ topic }}"], partitions: 2, replication_factor: 2, if_not_exists: true}
  register: made
- id: config
  config.set: {resource: "topic/{{ topic }}", values: {retention.ms: 3600000}}
- id: more
  loop: [a, b]
  topic.create: {names: ["{{ topic }}-{{ item }}"], partitions: 1, replication_factor: 1, if_not_exists: true}
- id: look
  config.get: {resource: "topic/{{ topic }}", keys: [retention.ms]}
  register: seen
- id: named
  set: {retention: "{{ (seen.value | first).value | int }}"}
- id: check
  assert:
    that: [made.value | length == 1, retention <= most]
    message: retention is {{ retention }}
- id: in
  include: {playbook: inner.yaml, parameters: {topic: "{{ topic }}"}}
on_failure:
- id: told
  run: {argv: [sh, -c, 'echo "failed $0" >> told', "{{ failure.step }}"], repeatable: true}
finally:
- id: last
  topic.create: {names: ["{{ topic }}-z"], partitions: 1, replication_factor: 1, if_not_exists: true}
"""
INNER = """\
playbook: 1
name: inner
parameters: {topic: {}}
steps:
- id: load
  produce: {topic: "{{ topic }}"}
  stdin: |
    one
    two
- id: tell
  run: [sh, -c, "echo told >> told"]
"""
REST = ("in/load", "in/tell")  # steps that do not run twice without confirmation


@dataclass
class Book:
    """The playbook in a folder, with its own topics."""

    kctl: Kctl
    cluster: TestCluster
    folder: Path
    topic: str

    @property
    def file(self) -> Path:
        return self.folder / "real.yaml"

    def run(self, *options: str, killed: str | None = None, file: Path | None = None) -> Result:
        """Run `kctl playbook run`, confirmed. killed: see kctl_forks.KILLED_AT."""
        given = ("-p", f"topic={self.topic}") if file is None else ()
        return self._kctl("run", str(file or self.file), *given, "--yes", *options, killed=killed)

    def resume(self, *options: str, killed: str | None = None) -> Result:
        return self._kctl("resume", "--yes", *options, killed=killed)

    def _kctl(self, *args: str, killed: str | None) -> Result:
        return self.kctl("playbook", *args, env={} if killed is None else {KILLED_AT: killed})

    def journals(self) -> list[Path]:
        return sorted((self.kctl.home / ".local/state/kctl/playbooks").glob("*.jsonl"))

    def told(self) -> list[str]:
        """Return the lines that programs wrote, in order."""
        path = self.folder / "told"
        return path.read_text().splitlines() if path.exists() else []

    def there(self) -> dict[str, Any]:
        """Return the state of the cluster: topics and their partitions, a config, records."""
        with connect(Target("there", tuple(self.cluster.bootstrap.split(",")))) as client:
            names = [name for name in client.metadata().topics if name.startswith(self.topic)]
        found: dict[str, Any] = {"topics": {name.removeprefix(self.topic) for name in names}}
        if self.topic in names:
            (row,) = self.kctl.json("topic", "describe", self.topic, "--offsets")
            configs = {each["name"]: each["value"] for each in row["config_entries"]}
            found["retention"] = configs.get("retention.ms")
            found["records"] = sum(each["offsets"]["log_end_offset"] for each in row["partitions"])
        return found

    def remove(self) -> None:
        names = [self.topic + name for name in self.there()["topics"]]
        if names:
            self.kctl.ok("topic", "delete", *names, "--yes")


WHOLE = {"topics": {"", "-a", "-b", "-z"}, "retention": "3600000", "records": 2}
NOTHING: dict[str, Any] = {"topics": set()}


@contextmanager
def book(kctl: Kctl, cluster: TestCluster, folder: Path, topic: str) -> Iterator[Book]:
    """Yield the book, with its own home for journals. Its topics are deleted at the end."""
    home = folder / "home"
    home.mkdir()
    servers = {"bootstrap_servers": cluster.bootstrap.split(",")}
    (home / "config.yaml").write_text(json.dumps({"current_context": "real", "contexts": {"real": servers}}))
    environment = {**kctl.environment, "HOME": str(home), "KCTL_CONFIG": str(home / "config.yaml")}
    (folder / "real.yaml").write_text(PLAYBOOK)
    (folder / "inner.yaml").write_text(INNER)
    made = Book(Kctl(home, environment), cluster, folder, f"{topic}-{os.getpid()}")
    try:
        yield made
    finally:
        made.remove()
