"""Shell completion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kctl.commands.completion import complete


@pytest.mark.parametrize(
    ("typed", "offered"), [(None, ["audit", "billing"]), ([], ["audit", "billing"]), (["billing"], ["audit"])]
)
def test_words_that_are_already_on_the_line_are_not_offered(
    typed: list[str] | None, offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(complete, "_names", lambda *_: ["audit", "billing"])
    ctx: Any = SimpleNamespace(
        params={"groups": typed}, parent=SimpleNamespace(info_name="group"), info_name="describe"
    )
    param: Any = SimpleNamespace(name="groups", metavar="[GROUP]…", param_type_name="argument")
    assert [item.value for item in complete.by_metavar(ctx, param, "")] == offered
