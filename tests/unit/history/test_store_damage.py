"""A store with a damaged file: which reports name it, in which words, and how often. No broker, no Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl.commands.app import main
from kctl.history.retention.store_reads import StoreReads
from kctl.history.snapshots import schema
from kctl.history.snapshots.footer import BadFooter, reason_of
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.store import Damaged
from kctl.history.snapshots.whole import check_files
from report_stores import START_MS, at_ms, small_cluster
from snapshot_stores import compact_all

pytestmark = pytest.mark.usefixtures("one_command_tree")
SPAN = ("--from", "2026-09-21T14:00:00Z", "--to", "2026-09-21T15:00:00Z")


@pytest.mark.parametrize("table", ["logs", "configs", "groups", "owners", "commits", "replicas", "log_dirs", "passes"])
def test_a_damaged_file_of_any_table_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """Logs and configs of earlier passes are in no figure; whoever keeps the store is told of them even so."""
    monkeypatch.chdir(tmp_path)
    store = small_cluster(Path("store"), passes=12)
    (folder,) = (store.root / table).glob("date=*/hour=*")
    broken = folder / f"pass-{at_ms(5)}.parquet"
    broken.write_bytes(broken.read_bytes()[:100])
    code = main(["spark", "report", "--store", "store", *SPAN, "-o", "json"])
    out, err = capsys.readouterr()
    assert code == 5
    assert json.loads(out)["lacking"] == [f"{broken}: it is not a complete Parquet file"]
    assert err.count(broken.name) == 1


def test_retention_names_files_that_no_figure_is_from(tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store", passes=12)
    (folder,) = (store.root / "logs").glob("date=*/hour=*")
    broken = folder / f"pass-{at_ms(5)}.parquet"
    broken.write_bytes(broken.read_bytes()[:100])
    job = StoreReads(store, START_MS, START_MS + HOUR_MS)
    job.outlook()
    assert job.errors == [f"{broken}: it is not a complete Parquet file"]


def test_a_file_is_missing_only_where_its_pass_had_rows(tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store", passes=3)
    for table in (schema.LOGS, schema.CONFIGS):
        (folder,) = (store.root / table).glob("date=*/hour=*")
        (folder / f"pass-{at_ms(1)}.parquet").unlink()
    damaged: list[Damaged] = []
    check_files(store, schema.TABLES, 0, START_MS + HOUR_MS, damaged=damaged.append)
    assert [(each.path.parts[-4], each.reason) for each in damaged] == [
        ("logs", "it is missing"),
        ("configs", "it is missing"),
    ]
    damaged.clear()
    check_files(store, schema.TABLES, at_ms(2), START_MS + HOUR_MS, damaged=damaged.append)
    assert not damaged


def test_a_whole_store_is_whole_compacted_or_not(tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store", passes=3)
    damaged: list[Damaged] = []
    for _ in range(2):
        check_files(store, schema.TABLES, 0, START_MS + HOUR_MS, damaged=damaged.append)
        compact_all(store)
    assert not damaged


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (OSError("Couldn't deserialize thrift: TProtocolException: Invalid data"), "it is not a complete Parquet file"),
        (OSError("Unexpected end of stream: Page was smaller (1) than expected"), "it is not a complete Parquet file"),
        (OSError("could not verify page integrity, CRC checksum verification failed"), "one of its pages is damaged"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (BadFooter("its footer is damaged"), "its footer is damaged"),
        (ValueError(""), "ValueError"),
    ],
)
def test_reasons_are_for_people(exc: Exception, text: str) -> None:
    assert reason_of(exc) == text
