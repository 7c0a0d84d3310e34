"""Shared by the tests of kctl capacity: plans from text values, and an evaluator of displayed formulas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from kctl.capacity.fields import MS, parse_input
from kctl.capacity.model import CapacityPlan, Term
from kctl.capacity.plan import plan
from kctl.capacity.workload import cluster_inputs, workload


def parsed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parse inputs that a user would write."""
    return {name: parse_input(name, str(value)) for name, value in values.items()}


def planned(cluster: Mapping[str, Any], *topics: Mapping[str, Any]) -> CapacityPlan:
    """Return the plan for topics t0, t1, …"""
    workloads = [workload(f"t{number}", parsed(values)) for number, values in enumerate(topics)]
    return plan(workloads, cluster_inputs(parsed(cluster)))


def terms(plan_or_topic: CapacityPlan | Any) -> dict[str, Term]:
    """Return the lines of a plan or of a topic plan by name."""
    return {term.name: term for term in plan_or_topic.terms}


def reckoned(formula: str, lines: Mapping[str, Term]) -> Fraction:
    """Evaluate a formula over names, with all operators that plans use. Durations are in seconds."""
    values = {name: _exact(term) for name, term in lines.items()}
    python = re.sub(r"⌈(.*?)⌉", r"_ceil(\1)", formula)
    for sign, operator in (("×", "*"), ("÷", "/"), ("−", "-"), ("^", "**")):
        python = python.replace(sign, operator)
    assert re.fullmatch(r"[a-z_0-9 ()*/+,\-]+", python), python
    numbers = re.sub(r"\b\d+\b", lambda match: f"_fraction({match.group()})", python)
    return Fraction(eval(numbers, {"__builtins__": {}}, {
        **values, "_ceil": ceil, "_fraction": Fraction, "max": max, "min": min,
    }))  # fmt: skip


def _exact(term: Term) -> Fraction:
    value = Fraction(str(term.value))
    return value / 1000 if term.unit == MS else value


def result(term: Term) -> Fraction:
    """Return the value of a line in the units of `reckoned`."""
    return _exact(term)
