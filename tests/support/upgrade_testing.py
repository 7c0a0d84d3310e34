"""Helpers of tests of upgrades."""

from __future__ import annotations

from pathlib import Path

from kctl.deploy.layout import ClusterSpec
from kctl.deploy.layout_request import LayoutRequest, build_spec


def spec_of(layout: str, version: str) -> ClusterSpec:
    """Return the description of a cluster that does not exist."""
    return build_spec(
        LayoutRequest(name="dev", layout=layout), directory=Path("/c/dev"), base_port=9092, kafka_version=version,
        kafka_libs=Path("/k"), created_at="x",
    )  # fmt: skip
