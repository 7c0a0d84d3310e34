"""One cluster of four brokers for all tests of shipped playbooks, set up by one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from books import Books


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Books]:
    """Four brokers, so that one of them can be replaced while topics keep three replicas."""
    home = tmp_path_factory.mktemp("books")
    made = Books(home, shared)
    try:
        created = made.run(
            "set-up-cluster", "--yes", cluster=Books.NAME, brokers="4", heap="256m",
            config='{"log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 500}',
        )  # fmt: skip
        assert (created.code, created.status) == (0, "changed"), str(created)
        made.kctl.ok("context", "use", Books.NAME)
        yield made
    finally:
        made.kctl("cluster", "destroy", Books.NAME, "--yes", "--confirm-cluster", Books.NAME, timeout=120)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a run leaves its files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
