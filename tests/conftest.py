"""Every test runs against the installed kctl, never against the checkout's folder by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kctl


def pytest_configure(config: pytest.Config) -> None:
    """Stop at once when the wheel under test is not what is imported."""
    checkout = Path(__file__).resolve().parent.parent
    imported = Path(kctl.__file__).resolve()
    if checkout in imported.parents and os.environ.get("KCTL_TEST_EDITABLE") != "1":
        pytest.exit(
            f"kctl is imported from the checkout ({imported}): run ./install.sh test, or set KCTL_TEST_EDITABLE=1",
            returncode=4,
        )
