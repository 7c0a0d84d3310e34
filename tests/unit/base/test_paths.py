"""Where kctl keeps its files, in the odd shells of CI jobs and containers."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from kctl.base import paths
from kctl.errors import UsageError


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("state", "home", "expected"),
    [
        ("/s", "/h", "/s/kctl"),
        ("relative", "/h", "/h/.local/state/kctl"),  # which XDG ignores
        ("", "/h", "/h/.local/state/kctl"),
    ],
)
def test_state(monkeypatch: pytest.MonkeyPatch, state: str, home: str, expected: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", home)
    assert paths.state_dir() == Path(expected)


@pytest.mark.parametrize("home", ["", None])
def test_an_empty_home_is_not_the_root(monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert paths.state_dir() == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/state/kctl"


def test_nobody_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2_000_000_123)
    with pytest.raises(UsageError, match="has no home") as caught:
        paths.state_dir()
    assert "XDG_STATE_HOME" in (caught.value.hint or "")
