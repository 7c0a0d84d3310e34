"""Which releases a cluster can be upgraded to."""

from __future__ import annotations

import pytest

from kctl.errors import KctlError, NotSupported, Refused
from kctl.upgrade.paths import check_path, is_later, path_warnings
from upgrade_testing import spec_of


@pytest.mark.parametrize(
    ("layout", "source", "target"),
    [
        ("kraft-single", "3.9.2", "4.4.0"),
        ("kraft-combined", "4.3.1", "4.4.0"),
        ("kraft-separate", "4.4.0-rc1", "4.4.0"),
        ("single", "2.8.2", "3.9.2"),
        ("three-node", "3.9.1", "3.9.2"),
    ],
)
def test_allowed(layout: str, source: str, target: str) -> None:
    check_path(spec_of(layout, source), target)


@pytest.mark.parametrize(
    ("layout", "source", "target", "error", "message", "hint"),
    [
        ("kraft-single", "4.4.0", "4.3.1", Refused, "cannot be downgraded to 4.3.1", "kctl cluster rollback dev"),
        ("kraft-single", "4.4.0", "4.4.0-rc1", Refused, "cannot be downgraded", "rollback"),
        ("single", "3.9.2", "3.8.1", Refused, "cannot be downgraded", "rollback"),
        ("single", "3.9.2", "4.4.0", NotSupported, "4.4.0 does not support ZooKeeper", "migrate the metadata"),
        ("three-node", "2.8.2", "4.0.0", NotSupported, "does not support ZooKeeper", "upgrade to 3.9.2 and finalize"),
        ("single", "2.3.1", "3.9.2", NotSupported, "with ZooKeeper 3.4", "topic clone --data"),
    ],
)
def test_refused(layout: str, source: str, target: str, error: type[KctlError], message: str, hint: str) -> None:
    with pytest.raises(error, match=message) as caught:
        check_path(spec_of(layout, source), target)
    assert caught.value.exit_code == 4
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("version", "than", "later"),
    [("4.4.0", "4.3.1", True), ("3.10.0", "3.9.2", True), ("4.4.0", "4.4.0-rc2", True), ("4.4.0-rc2", "4.4.0", False),
     ("4.4.0-rc2", "4.4.0-rc1", True), ("4.4.0", "4.4.0", False)],
)  # fmt: skip
def test_order(version: str, than: str, later: bool) -> None:
    assert is_later(version, than) is later


def test_what_kctl_cannot_check_is_a_warning() -> None:
    assert ["KIP-896" in line for line in path_warnings("3.9.2", "4.4.0")] == [True]
    assert list(path_warnings("4.3.1", "4.4.0")) == []
    assert ["not those of 4.5.0" in line for line in path_warnings("4.4.0", "4.5.0")] == [True]
