"""The report as JUnit XML: what CI systems count of it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from kctl.playbook.run.report import RunReport, StepReport
from kctl.playbook.run.report_junit import junit
from kctl.playbook.run.states import StepState


def _step(
    step: str, state: StepState | None, code: int | None = 0, operation: str = "lag", ms: int = 1000
) -> StepReport:
    return StepReport(
        step, step, "steps", operation, state, False, code, f"{step} said", None, 1, None, None, ms, None, False, [],
        False, "p.yaml", 3, 1, 1, 0,
    )  # fmt: skip


def _suite(*steps: StepReport, check: bool = False) -> ET.Element:
    report = RunReport(
        None, "p", "p.yaml", "d", None, None, check, "ok", 0, None, "2026-01-01T00:00:00.000Z", "", 2000, {}, {},
        list(steps),
    )  # fmt: skip
    return ET.fromstring(junit(report))[0]


def _counts(suite: ET.Element) -> dict[str, int]:
    """As the attributes have them, and the elements."""
    said = {key: int(suite.get(key, "")) for key in ("tests", "failures", "errors", "skipped")}
    found = {
        key: len(list(suite.iter(tag)))
        for key, tag in zip(said, ("testcase", "failure", "error", "skipped"), strict=True)
    }
    assert said == found
    return said


@pytest.mark.parametrize(
    ("state", "code", "check", "tag", "kind"),
    [
        (StepState.OK, 0, False, None, None),
        (StepState.CHANGED, 0, False, None, None),
        (StepState.WOULD_CHANGE, 0, True, None, None),
        (StepState.SKIPPED, None, False, "skipped", None),
        (None, None, False, "skipped", None),
        (StepState.FAILED, 1, False, "failure", "exit code 1"),
        (StepState.FAILED, 5, False, "error", "exit code 5"),
        (StepState.UNKNOWN, None, True, "skipped", None),  # a dry run cannot know
        (StepState.UNKNOWN, None, False, "error", "interrupted"),  # or a job that was cancelled looks fine
    ],
)
def test_what_a_step_is(
    state: StepState | None, code: int | None, check: bool, tag: str | None, kind: str | None
) -> None:
    suite = _suite(_step("a", state, code), check=check)
    assert _counts(suite)["tests"] == 1
    found = next(suite.iter("testcase")).find(tag or "skipped")
    assert (found is not None) == (tag is not None)
    if found is not None:
        assert (found.get("type"), found.get("message")) == (kind, "a said")


def test_what_is_included_counts_once() -> None:
    """A failure, and its time, are those of the step; an include that failed by itself is told."""
    steps = [
        _step("in", StepState.FAILED, 1, "include other", 2000), _step("in/a", StepState.OK),
        _step("in/b", StepState.FAILED, 1),
        _step("each", StepState.OK, 0, "include other", 2000), _step("each[0]/a", StepState.OK),
        _step("each[1]/a", StepState.OK),
        _step("broken", StepState.FAILED, 5, "include other"), _step("broken[0]/a", StepState.OK),
        _step("not", StepState.SKIPPED, None, "include other"), _step("in-other", StepState.OK),
    ]  # fmt: skip
    suite = _suite(*steps)
    names = [case.get("name", "").split(":")[0] for case in suite.iter("testcase")]
    assert names == ["in/a", "in/b", "each[0]/a", "each[1]/a", "broken", "broken[0]/a", "not", "in-other"]
    assert _counts(suite) == {"tests": 8, "failures": 1, "errors": 1, "skipped": 1}
