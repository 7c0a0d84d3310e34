"""What a validation says: values for programs, tables, sentences, the report's folder, drawings; from fed histories."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output_tables import cells_of, narrow
from kctl.commands.validate import run as validate_run
from kctl.commands.validate.tables import (
    matrix_tables,
    plan_lines,
    plan_tables,
    plan_warnings,
    print_verdicts,
    question,
    result_tables,
)
from kctl.errors import NotHealthy, OperationFailed, UsageError
from kctl.restart.gate import UnprotectedTopic
from kctl.validate.evidence import MissingRecord, ReplicaMatch, fate
from kctl.validate.invariants import FindingList, RecordPosition
from kctl.validate.matrix import SETUPS, Matrix, MatrixRow, Setup, doubts_of, meaning, promise, row_of
from kctl.validate.plan import WAIT_S, PlannedScenario, ValidationOptions
from kctl.validate.report.gaps import Fault
from kctl.validate.report.plot import Mark, Plot, ceiling, letters, plot_of
from kctl.validate.report.plot_svg import plot_svg
from kctl.validate.report.plot_terminal import plot_lines
from kctl.validate.report.report import csv_rows, gaps_around, matrix_value, result_value, run_value, times
from kctl.validate.report.report_folder import check_folder, markdown, write_report
from kctl.validate.report.sentences import missing_line, why_not
from kctl.validate.report.timeline import Recovery
from kctl.validate.report.verdict import BudgetResult, Budgets
from validation_results import KILL, PLANNED, SECOND, plan, result, sent

RESULT_KEYS = [
    "scenario", "ok", "topic", "run", "acks", "idempotence", "min_insync_replicas", "unclean_leader_election",
    "assignment", "sent", "acked", "failed", "indeterminate", "failed_in_log", "indeterminate_in_log", "log_records",
    "delivered", "missing_offsets", "lost", "misplaced", "duplicated", "out_of_order", "holes", "foreign",
    "not_delivered", "delivered_again", "delivered_late", "phantoms", "gap_before_ms", "gap_after_ms",
    "to_new_controller_ms", "to_new_leader_ms", "to_full_isr_ms", "budgets", "violated", "breaches", "doubts", "faults",
    "partitions", "records", "missing", "writes_per_second", "evidence", "duration_ms",
]  # fmt: skip


def test_the_keys_of_a_result() -> None:
    value = result_value(result())
    assert list(value) == RESULT_KEYS
    assert value["faults"] == [
        {
            "name": KILL.name, "at_s": 3.0, "longest_gap_ms": 3100, "to_new_controller_ms": 0, "to_new_leader_ms": 2500,
            "to_full_isr_ms": 9000,
        }
    ]  # fmt: skip
    assert value["partitions"] == [
        {"partition": 0, "gap_before_ms": 100, "gap_after_ms": 3100},
        {"partition": 1, "gap_before_ms": 100, "gap_after_ms": 3100},
    ]
    assert (value["ok"], value["sent"], value["acked"], value["log_records"], value["delivered"]) == (
        True, 180, 180, 180, 180,
    )  # fmt: skip
    assert json.loads(json.dumps(value)) == value


def test_the_keys_of_a_run_and_of_the_matrix() -> None:
    impossible = PlannedScenario("zookeeper-loss", "…", "…", (), 2, impossible="no ZooKeeper here")
    good = result()
    value = run_value(plan(PLANNED, impossible), "12345678", "/evidence", [good])
    assert list(value) == [
        "cluster", "cluster_id", "brokers", "run", "ok", "failed", "unmeasured", "left_out", "scenarios", "evidence",
    ]  # fmt: skip
    assert value["left_out"] == [{"scenario": "zookeeper-loss", "reason": "no ZooKeeper here"}]
    assert value["ok"]
    assert not run_value(plan(), "1", "/e", [])["ok"]  # nothing was proven
    assert not run_value(plan(), "1", "/e", [good], failed="no write")["ok"]
    assert not run_value(plan(), "1", "/e", [good, result(lost=[5])])["ok"]
    matrix = Matrix([row_of(SETUPS[0], good)], [good], ["doubt"])
    value = matrix_value(plan(), "1", "/e", matrix)
    assert list(value) == [
        "cluster", "cluster_id", "brokers", "run", "ok", "failed", "doubts", "matrix", "setups", "evidence",
    ]  # fmt: skip
    assert list(value["matrix"][0]) == [
        "acks", "idempotence", "min_insync_replicas", "sent", "acked", "failed", "indeterminate", "lost", "duplicated",
        "out_of_order", "longest_gap_ms", "promises", "meaning", "as_expected",
    ]  # fmt: skip
    assert not value["ok"]


def test_csv_has_a_line_for_each_scenario() -> None:
    (row,) = csv_rows([result_value(result())])
    assert {"scenario", "ok", "lost", "gap_after_ms"} <= set(row)
    assert not any(isinstance(value, (list, dict)) for value in row.values())


def test_times_of_all_faults() -> None:
    first, second = Recovery("a", None, {0: 5, 1: None}, {0: 70}), Recovery("b", 3, {}, {0: 90})
    assert times([first, second]) == {"to_new_controller_ms": 3, "to_new_leader_ms": 5, "to_full_isr_ms": 90}
    never = {"to_new_controller_ms": None, "to_new_leader_ms": None, "to_full_isr_ms": None}
    assert times([Recovery("a", None, {0: None}, {0: None})]) == never  # it did not come
    assert times([]) == dict.fromkeys(never, 0)  # nothing was to be waited for


def test_gaps_around_a_fault_that_was_at_once() -> None:
    assert gaps_around(result(faults=[])) == (3100, None)


# --- why not, and where records are ---------------------------------------------------------------------------------


def test_a_loss_names_partition_offset_and_sequence() -> None:
    found = result(lost=[40, 41])
    assert next(why_not(found.verdict)) == "lost: 2 records acknowledged but not in the log"
    assert not found.verdict.ok
    first, second = (each for each in found.missing if each.became != "not delivered")
    assert (first.partition, first.offset, first.sequence) == (1, 40, 40)
    assert missing_line(second) == (
        "partition 1, offset 41, sequence 41: not in the log; the log files are not on this machine"
    )


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        (
            MissingRecord(1, 5, 6, "lost", False, (), ("broker 3: x",), "k"),
            "partition 1, offset 5, sequence 6: lost: not in the log files of any replica (broker 3: x)",
        ),
        (
            MissingRecord(1, -1, 6, "lost", True, (), (), "k"),
            ("partition 1, no offset (acks=0), sequence 6: lost: not in the log files of any replica; "
            "the consumer got it"),
        ),
        (
            MissingRecord(1, 5, 6, "cut off", False, (ReplicaMatch(2, "0.log", 5),), (), "k"),
            "partition 1, offset 5, sequence 6: lost to clients, but still in a file: broker 2 has it at offset 5",
        ),
        (
            MissingRecord(1, 5, 6, "not delivered", False, (ReplicaMatch(2, "0.log", 5),), (), "k"),
            "partition 1, offset 5, sequence 6: not delivered; broker 2 has it at offset 5",
        ),
    ],
)  # fmt: skip
def test_where_a_record_is(missing: MissingRecord, expected: str) -> None:
    assert missing_line(missing) == expected


def test_lost_is_told_from_not_delivered() -> None:
    sighting = ReplicaMatch(1, "0.log", 5)
    assert fate([], readable=2, in_log=False) == "lost"
    assert fate([sighting], readable=2, in_log=False) == "cut off"
    assert fate([], readable=0, in_log=False) == "not looked for"
    assert fate([], readable=0, in_log=True) == fate([sighting], readable=1, in_log=True) == "not delivered"
    (row,) = result(unread=[7]).missing
    assert (row.became, row.partition, row.offset, row.sequence) == ("not delivered", 0, 7, 7)


def test_a_missed_budget_names_the_slowest_and_the_partitions() -> None:
    found = result(budgets=Budgets(max_gap_ms=2000, max_isr_ms=8000))
    assert not found.verdict.ok
    assert list(why_not(found.verdict)) == [
        f"budget: 3,100 ms without a write after '{KILL.name}' in partition 0, 1; the limit is 2,000 ms",
        f"budget: 9,000 ms until all replicas were in sync after '{KILL.name}' in partition 1; the limit is 8,000 ms",
    ]


def test_a_budget_that_was_not_measured_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no fault of one validation, and the run as a whole does not hold."""
    found = result(budgets=Budgets(max_leader_ms=3000, max_controller_ms=9000))
    assert (found.verdict.ok, list(why_not(found.verdict))) == (True, [])
    value = run_value(plan(), "1", "/e", [found])
    assert (value["ok"], value["unmeasured"]) == (False, ["max_controller_ms"])
    assert value["scenarios"][0]["budgets"] == [
        {"budget": "max_leader_ms", "limit_ms": 3000, "longest_ms": 2500, "kept": True},
        {"budget": "max_controller_ms", "limit_ms": 9000, "longest_ms": None, "kept": None},
    ]
    lines = [" ".join(line.split()) for line in _printed(capsys, result_tables(value["scenarios"])).splitlines()]
    at = lines.index("BUDGET LIMIT LONGEST KEPT")
    assert lines[at + 1 : at + 3] == [
        "--max-leader-time 3.0 s 2.5 s yes", "--max-controller-time 9.0 s - not measured",
    ]  # fmt: skip
    text = "\n".join(markdown(value, [found]))
    assert "**Failed.**" in text
    assert "--max-controller-time was not measured" in text
    assert "| --max-leader-time | 3000 | 2500 | yes |" in text
    moved = replace(found, verdict=replace(found.verdict, budgets=[BudgetResult("max_controller_ms", 9000, 50, True)]))
    assert run_value(plan(), "1", "/e", [found, moved])["unmeasured"] == []


# --- tables ---------------------------------------------------------------------------------------------------------


def _printed(capsys: pytest.CaptureFixture[str], tables: list[output.Table], form: str | None = None) -> str:
    output.emit(None, tables, form)
    return capsys.readouterr().out


def test_one_validation_has_faults_and_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _printed(capsys, result_tables([result_value(result())])).splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "SCENARIO OK ACKED FAILED UNKNOWN LOST TWICE REORDERED HOLES",
        "leader-election yes 180 0 0 0 0 0 0",
        "",
        "FAULT AT LONGEST GAP LEADER CONTROLLER FULL ISR",
        "(before) 0.1 s",
        f"{KILL.name} 3.0 s 3.1 s 2.5 s 9.0 s",
        "",
        "PARTITION REPLICAS LONGEST GAP BEFORE AFTER",
        "0 1,2,3 0.1 s 3.1 s",
        "1 2,3,1 0.1 s 3.1 s",
    ]


def test_what_has_not_come_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    value = result_value(result())
    value["faults"][0] |= {"to_new_leader_ms": None, "to_new_controller_ms": None}
    text = _printed(capsys, result_tables([value, value]))
    assert re.search(rf"leader-election +{KILL.name} +3\.0 s +3\.1 s +not yet +not yet +9\.0 s", text)
    assert "PARTITION" not in text


def test_the_tables_are_as_wide_as_a_terminal() -> None:
    value = {**result_value(result()), "scenario": "controller-election", "acked": 123_456}
    table = narrow(result_tables([value])[0])
    (cells,) = cells_of(table)
    widths = [max(len(column.title), len(text)) for column, text in zip(table.columns, cells, strict=True)]
    assert sum(widths) + 2 * (len(widths) - 1) == 80


def test_the_plan_and_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    impossible = PlannedScenario("zookeeper-loss", "does", "proves", (), 2, impossible="no ZooKeeper here")
    suffering = tuple(UnprotectedTopic(f"t{n}", 1, 1, 1, "it is gone") for n in range(7))
    made = replace(plan(PLANNED, impossible), unprotected=suffering)
    assert plan_lines(made) == ["leader-election: kill -9 of a leader"]
    assert question(made) == "Inject faults into cluster prod (1 validation), by the commands of hooks.yaml?"
    lines = plan_warnings(made)
    assert lines[0] == "zookeeper-loss is skipped: no ZooKeeper here"
    assert lines[1] == "topic t0 is affected: 1 partition with 1 replica, min.insync.replicas 1: it is gone"
    assert lines[-1] == "2 more topics affected; --dry-run lists all"
    text = _printed(capsys, plan_tables(made))
    assert "no: no ZooKeeper here" in text
    assert text.count("it is gone") == 7


def test_on_a_terminal_there_is_a_plot(capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch("sys.stdout.isatty", return_value=True):
        print_verdicts(Invocation(), [result(lost=[40])], matrix=False)
    shown = capsys.readouterr()
    assert "leader-election: lost: 1 record acknowledged but not in the log" in shown.err
    assert "leader-election: partition 1, offset 40, sequence 40: " in shown.err
    assert re.search(r"\A\n\S*leader-election: acknowledged writes per second", shown.out)  # no «\\n» to be read
    assert f"a 3.0 s: {KILL.name}" in shown.out
    print_verdicts(Invocation(), [result()], matrix=False)
    assert capsys.readouterr().out == ""  # no terminal
    with mock.patch("sys.stdout.isatty", return_value=True):
        print_verdicts(Invocation(output="json"), [result()], matrix=False)
    assert capsys.readouterr().out == ""


# --- the matrix -----------------------------------------------------------------------------------------------------


def test_the_matrix_is_all_that_can_be_combined() -> None:
    assert len({each.name for each in SETUPS}) == len(SETUPS) == 8
    assert {(each.acks, each.idempotent) for each in SETUPS} == {
        ("0", False), ("1", False), ("all", False), ("all", True),
    }  # fmt: skip
    assert [each.name for each in SETUPS if each.keeps] == ["acks-all-min-2", "acks-all-idempotent-min-2"]


@pytest.mark.parametrize(
    ("setup", "lost", "expected", "said"),
    [
        (Setup("1", False, 1), [5], True, "lost acknowledged records, as allowed"),
        (Setup("1", False, 2), [], True, "kept all acknowledged records, this time"),
        (Setup("all", True, 2), [], True, "kept all acknowledged records"),
        (Setup("all", True, 2), [5], False, "BROKEN: it lost acknowledged records; misplaced"),
        (Setup("all", True, 1), [5], True, "lost acknowledged records, as allowed"),
    ],
)
def test_a_row_of_the_matrix(setup: Setup, lost: list[int], expected: bool, said: str) -> None:
    row = row_of(setup, result(lost=lost, acks=setup.acks))
    assert (row.as_expected, row.meaning, row.lost) == (expected, said, len(lost))
    assert meaning(setup, len(lost), [] if expected else ["lost", "misplaced"]) == said
    assert row.longest_gap_ms == 3100
    assert promise(setup)


def test_a_fault_that_costs_nothing_was_none(capsys: pytest.CaptureFixture[str]) -> None:
    results = [result(acks=setup.acks) for setup in SETUPS]
    rows: list[MatrixRow] = [row_of(*each) for each in zip(SETUPS, results, strict=True)]
    assert [each.partition(":")[0] for each in doubts_of(rows, results)] == ["acks=1 lost nothing"]
    assert not Matrix(rows, [], doubts_of(rows, results)).ok
    rows[1] = row_of(SETUPS[1], result(lost=[5], acks="1"))
    assert doubts_of(rows, results) == []
    assert Matrix(rows, [], []).ok
    text = _printed(capsys, matrix_tables(Matrix(rows, [], [])))
    assert text.splitlines()[0].split("  ")[0] == "ACKS"
    assert len(text.splitlines()) == 9


_FINDING = FindingList(1, [RecordPosition(0, 5, 5)])


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("lost", [6, 7]),
        ("misplaced", [6, 7]),
        ("duplicated", [7]),
        ("out_of_order", [7]),
        ("holes", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("foreign", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("not_delivered", [7]),
        ("delivered_again", []),
        ("phantoms", []),
    ],
)
def test_each_set_up_is_held_to_what_it_promises(name: str, broken: list[int]) -> None:
    """Without idempotence there are duplicates, and no offset is missing in any."""
    held = result()
    setattr(held.verdict.findings, name, _FINDING)
    rows = [row_of(setup, held) for setup in SETUPS]
    assert [number for number, row in enumerate(rows) if not row.as_expected] == broken
    assert [number for number, row in enumerate(rows) if "BROKEN" in row.meaning] == broken
    for number in broken:
        assert (name.replace("_", " ") if name != "lost" else "it lost") in rows[number].meaning
    assert Matrix(rows, [], []).ok == (not broken)


def test_a_set_up_that_proves_nothing_is_a_doubt_of_the_matrix() -> None:
    results = [result(acks=setup.acks, lost=[5] if setup.acks == "1" else []) for setup in SETUPS]
    results[7].verdict.doubts.append("the producer did not exit cleanly")
    rows = [row_of(*each) for each in zip(SETUPS, results, strict=True)]
    doubts = doubts_of(rows, results)
    assert doubts == [
        "acks=all, idempotence, min.insync.replicas=2: the producer did not exit cleanly"
    ]  # fmt: skip
    assert not Matrix(rows, results, doubts).ok


# --- exit codes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "raised"),
    [
        ([result()], None),
        ([result(), result(lost=[40])], NotHealthy),
        ([result(budgets=Budgets(max_gap_ms=1))], NotHealthy),
        ([result(budgets=Budgets(max_leader_ms=2500))], None),
        ([result(budgets=Budgets(max_controller_ms=60_000))], NotHealthy),  # none measured it
        ([result(), OperationFailed("broker 2 does not start")], OperationFailed),
    ],
    ids=["held", "a loss", "a budget", "a budget kept", "a budget not measured", "not put back"],
)
def test_exit_codes(found: list[object], raised: type[Exception] | None, capsys: pytest.CaptureFixture[str]) -> None:
    """What was found is shown, however it ends."""

    class Run:
        run_id, folder, not_led = "12345678", Path("/evidence"), None

        def __enter__(self) -> Run:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def scenario(self, _: object) -> object:
            answer = found.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    rows = [PLANNED] * len(found)
    prepared = mock.Mock(plan=plan(*rows), report=None, told=validate_run._Progress())
    prepared.begin.return_value = Run()
    with mock.patch.object(validate_run, "_prepared") as given:
        given.return_value.__enter__.return_value = prepared
        given.return_value.__exit__.return_value = False
        args = (Invocation(output="json"), None, ValidationOptions(), None, None)
        if raised is None:
            validate_run.run_scenarios(*args, dry_run=False)
        else:
            with pytest.raises(raised):
                validate_run.run_scenarios(*args, dry_run=False)
    value = json.loads(capsys.readouterr().out)
    assert value["ok"] == (raised is None)
    assert len(value["scenarios"]) == len(rows) - (raised is OperationFailed)
    assert (value["failed"] is not None) == (raised is OperationFailed)


@pytest.mark.parametrize(("asked", "wait_s"), [(None, WAIT_S), ("15m", 900.0), ("10s", 10.0)])
@pytest.mark.parametrize("matrix", [False, True])
def test_timeout_is_the_longest_wait(matrix: bool, asked: str | None, wait_s: float) -> None:
    with mock.patch.object(validate_run, "_prepared") as given:
        given.return_value.__enter__.return_value = None  # a dry run
        inv = Invocation(timeout=asked)
        if matrix:
            validate_run.run_matrix(inv, None, None, dry_run=True)
        else:
            validate_run.run_scenarios(
                inv, None, ValidationOptions(acks="1", idempotent=False), None, None, dry_run=True
            )
    options = given.call_args.args[2]
    assert (options.wait_s, options.acks) == (wait_s, "all" if matrix else "1")


@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("failed", [False, True])
def test_what_was_measured_is_shown_though_the_report_cannot_be_written(
    matrix: bool, failed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor all be taken back."""
    lossy = result(lost=[40])

    class Run:
        run_id, folder, not_led = "12345678", Path("/evidence"), None

        def __enter__(self) -> Run:
            return self

        def __exit__(self, *_: object) -> None:
            if failed:
                raise OperationFailed("not all is as it was")

        def scenario(self, _: object) -> object:
            return lossy

    (tmp_path / "file").touch()
    prepared = mock.Mock(plan=plan(PLANNED), report=tmp_path / "file", told=validate_run._Progress())
    prepared.begin.return_value = Run()
    carried = Matrix([row_of(SETUPS[7], lossy)], [lossy], [])
    inv = Invocation(output="json")

    def work() -> None:
        if matrix:
            validate_run.run_matrix(inv, None, None, dry_run=False)
        else:
            validate_run.run_scenarios(inv, None, ValidationOptions(), None, None, dry_run=False)

    with (
        mock.patch.object(validate_run, "_prepared") as given,
        mock.patch("kctl.validate.matrix.run_matrix", return_value=carried),
    ):
        given.return_value.__enter__.return_value = prepared
        given.return_value.__exit__.return_value = False
        with pytest.raises(OperationFailed, match="not all is as it was" if failed else "cannot write the report in"):
            work()
    shown = capsys.readouterr()
    value = json.loads(shown.out)
    assert [row["lost"] for row in value["setups" if matrix else "scenarios"]] == [1]
    assert value["failed"] == ("not all is as it was" if failed else None)
    assert not value["ok"]
    assert "the evidence is in /evidence" in shown.err
    assert ("cannot write the report in" in shown.err) == failed


# --- the report's folder --------------------------------------------------------------------------------------------


def test_the_report_is_a_folder(tmp_path: Path) -> None:
    good, bad = result(), result(scenario="broker-loss", lost=[40], folder=Path("/evidence/broker-loss"))
    value = run_value(plan(), "12345678", "/evidence", [good, bad])
    write_report(tmp_path / "r", value, [good, bad])
    assert {path.name for path in (tmp_path / "r").iterdir()} == {
        "report.json", "report.md", "leader-election.svg", "broker-loss.svg",
    }  # fmt: skip
    assert json.loads((tmp_path / "r" / "report.json").read_text()) == json.loads(json.dumps(value))
    text = (tmp_path / "r" / "report.md").read_text()
    assert "**Failed.**" in text
    assert "## broker-loss: failed" in text
    assert "- lost: 1 record acknowledged but not in the log" in text
    assert f"| {KILL.name} | 3.0 | 3100 | 0 | 2500 | 9000 |" in text
    assert "| 0 | 1, 2, 3 | 100 | 3100 |" in text
    assert "![writes per second](broker-loss.svg)" in text
    with pytest.raises(UsageError):
        check_folder(tmp_path / "r")
    with pytest.raises(UsageError):
        check_folder(tmp_path / "no" / "r")
    with pytest.raises(UsageError):
        check_folder(tmp_path / "r" / "report.md")
    check_folder(tmp_path / "new")


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_may_not_be_written_is_told_before(there: bool, tmp_path: Path) -> None:
    """Root may write anywhere: so the answer is given."""
    folder = tmp_path / "r"
    if there:
        folder.mkdir()
    with (
        mock.patch("os.access", side_effect=lambda path, mode: not mode & os.W_OK),
        pytest.raises(UsageError, match=f"{folder if there else tmp_path} is not writable"),
    ):
        check_folder(folder)
    check_folder(folder)


def test_the_report_has_the_matrix_and_escapes_what_others_wrote() -> None:
    found = result(acks="1", lost=[40])
    matrix = Matrix([row_of(SETUPS[1], found)], [found], [])
    value = {**matrix_value(plan(), "1", "/e", matrix), "cluster": "a|b\x1b<c>"}
    text = "\n".join(markdown(value, [found], matrix.rows))
    assert "| 1 | no | 1 | 180 | 0 | 1 | 0 | 0 | lost acknowledged records, as allowed |" in text
    assert "# Validation of a\\|b" in text
    assert "\x1b" not in text
    assert "\\<c\\>" in text


# --- drawings -------------------------------------------------------------------------------------------------------


def test_a_plot_has_the_seconds_and_the_faults() -> None:
    plot = plot_of(sent(), [KILL])
    assert plot.per_s == (20, 20, 20, 2, 0, 0, 18, 20, 20, 20, 20, 20)
    assert plot.marks == (Mark(3.0, KILL.name),)
    late = sent()
    late.stop_ns = 10 * SECOND  # what was under way then is acknowledged behind it
    assert plot_of(late, [KILL]).per_s == plot.per_s
    assert plot_of(type(sent())(), [KILL]) == Plot((), ())


def test_round_numbers_and_letters() -> None:
    assert [ceiling(values) for values in ([], [0], [1], [3], [7], [18], [51], [100], [1001])] == [
        1, 1, 1, 5, 10, 20, 100, 100, 2000,
    ]  # fmt: skip
    assert letters(3) == ["a", "b", "c"]
    assert letters(28)[-2:] == ["27", "28"]


@pytest.mark.parametrize("width", [20, 40, 80, 120, 300])
@pytest.mark.parametrize("plain", [False, True])
def test_a_plot_fits_and_shows_a_second_without_writes(width: int, plain: bool) -> None:
    per_s = [100] * 200
    per_s[117] = 0
    lines = plot_lines(Plot(tuple(per_s), (Mark(117.0, "kill"),)), width=width, plain=plain)
    assert max(map(len, lines)) <= max(width, 20)
    bars = [line.partition("|" if plain else "│")[2] for line in lines[:6]]
    columns = min(width - 10, 200)
    at = lines[6][10:].index("a")
    assert abs(at - 117 * columns // 200) <= 1
    assert all(len(line) <= at or line[at] == " " for line in bars)  # the empty second is right above its mark
    assert lines[0].startswith("     100 ")
    assert lines[-1] == "a 117.0 s: kill"
    if plain:
        assert all(line.isascii() for line in lines)


def test_marks_on_each_other_and_hostile_names() -> None:
    plot = Plot((5, 5), (Mark(0.1, "one"), Mark(0.2, "two\x1b[2J"), Mark(9.0, "late")))
    lines = plot_lines(plot, width=30)
    assert lines[6].split() == ["*c"]
    assert "\x1b" not in "".join(lines)
    assert plot_lines(Plot((), ())) == ["no write was acknowledged"]


def test_a_drawing_is_well_formed_and_takes_nothing_from_elsewhere() -> None:
    plot = Plot((0, 10, 20), (Mark(1.5, "kill <b> & \x07"), Mark(99.0, "late")))
    text = plot_svg(plot, "title <script>")
    root = ET.fromstring(text)
    bars = [each for each in root.iter() if each.get("class") == "area"]
    assert len(bars) == 2
    assert float(bars[1].get("height") or 0) == 2 * float(bars[0].get("height") or 0)
    lines = [each for each in root.iter() if each.get("class") == "fault"]
    assert len(lines) == 2
    assert max(float(each.get("x1") or 0) for each in lines) <= 860
    assert "<script" not in text
    assert "href" not in text
    assert ET.fromstring(plot_svg(Plot((), ()), "none")) is not None


def test_a_fault_has_the_moment_of_the_plot() -> None:
    late = Fault("late", 20 * SECOND, ())
    assert plot_of(sent(), [late]).marks == (Mark(20.0, "late"),)
