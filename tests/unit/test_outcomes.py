"""Exit code 4 is for what was refused as a whole."""

from __future__ import annotations

import pytest

from kctl.errors import KctlError, NotAuthorized, OperationFailed, OutcomeUnknown, Refused
from kctl.outcomes import raise_refusal

NO, FORBIDDEN, BROKE, LOST = Refused("no"), NotAuthorized("no"), OperationFailed("broke"), OutcomeUnknown("who knows")


@pytest.mark.parametrize("errors", [[NO], [FORBIDDEN, NO]])
def test_all_refused(errors: list[KctlError]) -> None:
    with pytest.raises(type(errors[0])):
        raise_refusal(errors, asked=len(errors))


@pytest.mark.parametrize(("errors", "asked"), [([], 0), ([], 2), ([NO], 2), ([NO, BROKE], 2), ([LOST, NO], 2)])
def test_something_may_have_been_done(errors: list[KctlError], asked: int) -> None:
    raise_refusal(errors, asked=asked)
