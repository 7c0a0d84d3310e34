"""A run as JUnit XML, for CI systems: a testcase for each step.

The format is what Jenkins, GitLab and GitHub's reporters read (https://github.com/testmoapp/junitxml): a check that is
not fulfilled is a failure, everything else that failed an error, what was not done is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from kctl.errors import ExitCode
from kctl.playbook.report import RunReport, StepReport
from kctl.playbook.states import State
from kctl.text import printable

_NOT_DONE = frozenset({State.SKIPPED, State.UNKNOWN, None})
_NOT_IN_XML = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # https://www.w3.org/TR/xml/#charsets


def junit(report: RunReport) -> str:
    """The document."""
    suite = {
        "name": _text(report.playbook),
        "timestamp": report.started_at,
        "time": _seconds(report.duration_ms),
        **_counts(report.steps),
    }
    root = ET.Element("testsuites", {key: suite[key] for key in ("name", "time", "tests", "failures", "errors")})
    element = ET.SubElement(root, "testsuite", suite)
    properties = ET.SubElement(element, "properties")
    facts = {"run": report.run, "target": report.target, "cluster_id": report.cluster_id, "status": report.status}
    for name, value in facts.items():
        if value is not None:
            ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    for each in report.steps:
        _case(element, report, each)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'


def _case(suite: ET.Element, report: RunReport, step: StepReport) -> None:
    attributes = {
        "classname": _text(f"{report.playbook}.{step.part}"),
        "name": _text(f"{step.step}: {step.name}"),
        "time": _seconds(step.duration_ms),
        "file": _text(step.file),
        "line": str(step.line),
    }
    case = ET.SubElement(suite, "testcase", attributes)
    message = _text(step.message or "")
    if step.state in _NOT_DONE:
        ET.SubElement(case, "skipped", {"message": message})
    elif step.state is State.FAILED:
        code = "none" if step.exit_code is None else str(step.exit_code)
        element = ET.SubElement(case, _word(step), {"message": message, "type": f"exit code {code}"})
        place = f"{step.file}:{step.line}: {step.operation}"
        element.text = _lines([step.message or "", step.hint or "", place])
    if step.notes:
        ET.SubElement(case, "system-err").text = _lines(step.notes)


def _word(step: StepReport) -> str:
    return "failure" if step.exit_code == ExitCode.UNHEALTHY else "error"


def _counts(steps: list[StepReport]) -> dict[str, str]:
    failed = [each for each in steps if each.state is State.FAILED]
    failures = sum(_word(each) == "failure" for each in failed)
    return {
        "tests": str(len(steps)),
        "failures": str(failures),
        "errors": str(len(failed) - failures),
        "skipped": str(sum(each.state in _NOT_DONE for each in steps)),
    }


def _text(text: str) -> str:
    """Text that XML can hold and a terminal can show: everything else is an escape."""
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", printable(text))


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(_text(text) for text in texts if text)


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.3f}"
