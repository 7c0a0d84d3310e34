"""JUnit XML of a run, for CI systems: one testcase per step.

Jenkins, GitLab and GitHub reporters read this format (https://github.com/testmoapp/junitxml). A failed
check is a failure, any other failure or an interrupt is an error, and a step that did not run is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal
from xml.etree import ElementTree as ET

from kctl.base.text import printable
from kctl.errors import ExitCode
from kctl.playbook.run.report import RunReport, StepReport
from kctl.playbook.run.states import StepState

CaseOutcome = Literal["failure", "error", "skipped"]
_NOT_DONE = frozenset({StepState.SKIPPED, StepState.UNKNOWN, None})
_NOT_IN_XML = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # https://www.w3.org/TR/xml/#charsets


def junit(report: RunReport) -> str:
    """Return the XML document."""
    steps = [each for each in report.steps if not _is_covered_by_steps(each, report.steps)]
    outcomes = [_outcome(each, check=report.check) for each in steps]
    suite = {
        "name": _text(report.playbook),
        "timestamp": report.started_at,
        "time": _seconds(report.duration_ms),
        "tests": str(len(steps)),
        **{f"{word}s": str(outcomes.count(word)) for word in ("failure", "error")},
        "skipped": str(outcomes.count("skipped")),
    }
    root = ET.Element("testsuites", {key: suite[key] for key in ("name", "time", "tests", "failures", "errors")})
    element = ET.SubElement(root, "testsuite", suite)
    properties = ET.SubElement(element, "properties")
    facts = {"run": report.run, "target": report.target, "cluster_id": report.cluster_id, "status": report.status}
    for name, value in facts.items():
        if value is not None:
            ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    for each, outcome in zip(steps, outcomes, strict=True):
        _case(element, report, each, outcome)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'


def _is_covered_by_steps(step: StepReport, steps: list[StepReport]) -> bool:
    """Return True for an include with the same state as one of its steps, which would be counted twice."""
    within = (f"{step.step}/", f"{step.step}[")
    return step.operation.startswith("include ") and any(
        each.state is step.state and each.step.startswith(within) for each in steps
    )


def _outcome(step: StepReport, *, check: bool) -> CaseOutcome | None:
    """Return the outcome; None for success. An interrupted step is an error, as CI does not see the exit code."""
    if step.state is StepState.FAILED:
        return "failure" if step.exit_code == ExitCode.UNHEALTHY else "error"
    if step.state is StepState.UNKNOWN and not check:
        return "error"
    return "skipped" if step.state in _NOT_DONE else None


def _case(suite: ET.Element, report: RunReport, step: StepReport, outcome: CaseOutcome | None) -> None:
    attributes = {
        "classname": _text(f"{report.playbook}.{step.part}"),
        "name": _text(f"{step.step}: {step.name}"),
        "time": _seconds(step.duration_ms),
        "file": _text(step.file),
        "line": str(step.line),
    }
    case = ET.SubElement(suite, "testcase", attributes)
    message = _text(step.message or "")
    if outcome == "skipped":
        ET.SubElement(case, "skipped", {"message": message})
    elif outcome is not None:
        kind = "interrupted" if step.exit_code is None else f"exit code {step.exit_code}"
        element = ET.SubElement(case, outcome, {"message": message, "type": kind})
        place = f"{step.file}:{step.line}: {step.operation}"
        element.text = _lines([step.message or "", step.hint or "", place])
    if step.notes:
        ET.SubElement(case, "system-err").text = _lines(step.notes)


def _text(text: str) -> str:
    """Escape characters that XML does not allow or a terminal cannot display."""
    return _NOT_IN_XML.sub(lambda match: f"\\u{ord(match.group()):04x}", printable(text))


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(_text(text) for text in texts if text)


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.3f}"
