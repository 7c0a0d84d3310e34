"""Exit code 4 is for what was refused as a whole."""

from __future__ import annotations

import pytest

from kctl.base.outcomes import raise_refusal, reasons
from kctl.base.text import some_of
from kctl.errors import KctlError, NotAuthorized, OperationFailed, OutcomeUnknown, Refused

NO, FORBIDDEN, BROKE, LOST = Refused("no"), NotAuthorized("no"), OperationFailed("broke"), OutcomeUnknown("who knows")


@pytest.mark.parametrize("errors", [[NO], [FORBIDDEN, NO]])
def test_all_refused(errors: list[KctlError]) -> None:
    with pytest.raises(type(errors[0])):
        raise_refusal(errors, requested=len(errors))


@pytest.mark.parametrize(("errors", "asked"), [([], 0), ([], 2), ([NO], 2), ([NO, BROKE], 2), ([LOST, NO], 2)])
def test_something_may_have_been_done(errors: list[KctlError], asked: int) -> None:
    raise_refusal(errors, requested=asked)


@pytest.mark.parametrize(
    ("errors", "line"),
    [
        ({}, ""),
        ({"a": "no"}, "a: no"),
        ({"a": None}, "a: failed"),
        ({"a": "no", "b": "why"}, "a: no; b: why"),
        ({"a": "no", "b": "why", "c": "no"}, "a, c: no; b: why"),
        ({str(n): "no answer" for n in range(40)}, "0, 1, 2, 3, 4 and 35 more: no answer"),
        ({f"t{n}": f"r{n}" for n in range(5)}, "t0: r0; t1: r1; t2: r2; and 2 others (-o json has all)"),
        (
            {**{f"t{n}": f"r{n}" for n in range(4)}, "x": "r0"},
            "t0, x: r0; t1: r1; t2: r2; and 1 other (-o json has all)",
        ),
    ],
)
def test_reasons_in_one_line(errors: dict[str, str | None], line: str) -> None:
    assert reasons(errors) == line


def test_a_line_does_not_grow_with_what_failed() -> None:
    assert len(reasons({f"topic-{n}": f"reason {n % 1000}" for n in range(100_000)})) < 300
    assert some_of([str(n) for n in range(1_205)]) == "0, 1, 2, 3, 4 and 1,200 more"
    assert some_of(["a", "b"], 2) == "a, b"
