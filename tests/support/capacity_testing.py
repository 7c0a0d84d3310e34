"""What the tests of `kctl capacity` share: plans made of texts, and a reckoner for the formulas that plans show."""

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
    """Inputs as somebody would write them."""
    return {name: parse_input(name, str(value)) for name, value in values.items()}


def planned(cluster: Mapping[str, Any], *topics: Mapping[str, Any]) -> CapacityPlan:
    """The plan of topics t0, t1, …"""
    workloads = [workload(f"t{number}", parsed(values)) for number, values in enumerate(topics)]
    return plan(workloads, cluster_inputs(parsed(cluster)))


def terms(found: CapacityPlan | Any) -> dict[str, Term]:
    """The lines of a plan, or of a topic in it, by name."""
    return {term.name: term for term in found.terms}


def reckoned(formula: str, known: Mapping[str, Term]) -> Fraction:
    """What a formula of names comes to: every operator that plans use; durations in seconds."""
    values = {name: _exact(term) for name, term in known.items()}
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
    """A line's value in the units that `reckoned` has."""
    return _exact(term)
