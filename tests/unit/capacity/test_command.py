"""The command kctl capacity: tables, JSON, and arguments that it rejects before it contacts anything."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.capacity.fields import parse_input
from kctl.commands import app
from kctl.commands.capacity.measure import measure_options
from kctl.commands.capacity.options import CapacityOptions

LOAD = ("--throughput", "200MB/s", "--retention", "3d", "--groups", "2", "--disk", "4TB", "--network", "10Gbit/s")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert app.main(["capacity", *arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_keys(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, *LOAD)
    assert list(found) == ["plan", "measured"]
    assert found["measured"] is None
    plan = found["plan"]
    assert list(plan) == [
        "broker_count", "partition_count", "replica_count", "disk_bytes", "bounds", "terms", "topic_plans", "cautions",
    ]  # fmt: skip
    assert plan["bounds"][1] == {"name": "brokers_for_disk", "least": 52, "binds": True}
    (topic,) = plan["topic_plans"]
    assert list(topic) == [
        "topic", "partition_count", "replication_factor", "min_insync_replicas", "partition_bytes", "disk_bytes",
        "oldest_record_ms", "bounds", "losses", "terms",
    ]  # fmt: skip
    assert topic["losses"][0] == {"brokers_down": 0, "writes_survive": 1, "data_survive": 1}
    lines = {term["name"]: term for term in topic["terms"]}
    assert lines["network_out"] == {
        "name": "network_out", "value": 800_000_000, "unit": "bytes_per_s", "source": "computed",
        "formula": "stored_rate × (groups + replication_factor − 1)", "numbers": "200 MB/s × (2 + 3 − 1)",
    }  # fmt: skip
    assert lines["throughput"]["source"] == "given"
    assert plan["cautions"] == [
        {"code": "consumer_rate_assumed", "message": plan["cautions"][0]["message"], "topic": None}
    ]


def test_table_shows_the_binding_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["capacity", *LOAD, "--explain"]) == 0
    captured = capsys.readouterr()
    assert captured.out.index("BROKERS FOR") < captured.out.index("HOW"), "the answer first"
    rows = [line.split() for line in captured.out.splitlines()]
    assert ["disk", "52", "yes"] in rows
    assert "⌈162.6 TB ÷ 3.2 TB⌉ + 1" in captured.out
    assert "⌈disk_bytes ÷ usable_disk⌉ + survive" in captured.out
    assert "warning: consumer rate unknown" in captured.err


def test_csv_has_a_row_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["capacity", *LOAD, "-o", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["topic", "name", "value", "unit", "source", "formula", "numbers"]
    assert {row["topic"] for row in rows} == {"topic", ""}


def _file(tmp_path: Path, count: int = 1) -> str:
    path = tmp_path / "capacity.yaml"
    topics = "".join(f"  - {{name: t{number}, data: 1TB, replication_factor: 1}}\n" for number in range(count))
    path.write_text(f"disk: 4TB\ntopics:\n{topics}")
    return str(path)


def test_capacity_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = _json(capsys, "-f", _file(tmp_path, 2), "--survive", "0", "--headroom", "0")["plan"]
    assert (plan["broker_count"], plan["disk_bytes"]) == (1, 2 * 10**12)
    grown = _json(capsys, "-f", _file(tmp_path, 2), "--survive", "0", "--headroom", "0", "--times", "8")["plan"]
    assert grown["broker_count"] == 4


def test_arithmetic_is_shown_only_with_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, 9)
    assert app.main(["capacity", "-f", file]) == 0
    captured = capsys.readouterr()
    assert "data × growth_factor" not in captured.out
    assert "--explain shows the arithmetic" in captured.err
    assert "warning: t0, t1, t2, t3, t4 and 4 more: replication factor 1" in captured.err, "one warning for all topics"
    assert app.main(["capacity", "-f", file, "--explain"]) == 0
    assert capsys.readouterr().out.count("data × growth_factor") == 9


REFUSED = [
    ((), 2, "no load is specified"),
    (("--throughput", "50"), 2, "--throughput: '50' is not a throughput"),
    (("--data", "20TB", "--retention", "7d"), 2, "cannot be combined"),
    (("--data", "20TB", "--years", "-1"), 2, "--years: '-1' is not a whole number from 0 to 50"),
    (("-f", "nowhere.yaml"), 4, "there is no file nowhere.yaml"),
    (("-f", "x.yaml", "--from-cluster"), 2, "--file and --from-cluster cannot be combined"),
    (("-f", "x.yaml", "--data", "1TB"), 2, "--data is for one topic"),
    (("--from-cluster", "--partitions", "5"), 2, "--partitions is for one topic"),
    (("--data", "1TB", "--window", "5s"), 2, "require --from-cluster"),
    (("--from-cluster", "--window", "2h"), 2, "--window 2h must be between"),
    (("--throughput", "1MB/s", "--retention", "7"), 2, "'7' has no unit"),
    (("--data", "1TB", "--duration", "5s"), 2, "--duration requires --measure"),
    (("--measure", "--duration", "11m"), 2, "--duration 11m must be between"),
    (("--measure", "--record-size", "2MB"), 2, "record size 2,000,000"),
    (("--measure", "--max-bytes", "10"), 2, "smaller than one record"),
    (("--measure", "--acks", "0"), 2, "'0' is not one of"),
    (("--measure", "--retention", "1d", "--data", "1TB"), 2, "cannot be combined"),
    (("--data", "99999TB", "--disk", "1GB"), 4, "more than 10,000 brokers"),
]


@pytest.mark.parametrize(("arguments", "code", "why"), REFUSED, ids=[" ".join(a) for a, _, _ in REFUSED])
def test_rejected_arguments(
    arguments: tuple[str, ...], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No cluster is contacted: there is none."""
    assert app.main(["capacity", *arguments, "--bootstrap-server", "127.0.0.1:1"]) == code
    assert why in capsys.readouterr().err


def test_min_isr_above_the_replicas_counts_as_all() -> None:
    inv: Any = SimpleNamespace(timeout_s=lambda seconds: seconds)
    inputs = {"replication_factor": parse_input("replication_factor", "1")}
    with_min_isr = {**inputs, "min_insync_replicas": parse_input("min_insync_replicas", "2")}
    options = CapacityOptions()
    assert [measure_options(inv, options, each).min_insync_replicas for each in (inputs, with_min_isr)] == [1, 1]
