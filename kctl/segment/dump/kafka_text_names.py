"""File names as DumpLogSegments reads them."""

from __future__ import annotations

import os
from pathlib import Path

from kctl.segment.dump.kafka_text_options import ToolCrash
from kctl.segment.format.release import Release


def suffix_of(name: str, release: Release) -> str:
    position = name.rfind(".")
    if position < 0 and release is not Release.KAFKA_3_9:
        return ""
    if position < 0:
        raise ToolCrash(f"{name} has no suffix, so its contents are unknown")
    return name[position:]


def base_offset_of(path: Path) -> int:
    stem = path.name.split(".")[0]
    digits = stem[1:] if stem[:1] in {"+", "-"} else stem
    if not (digits.isascii() and digits.isdigit()) or not -(2**63) <= int(stem) < 2**63:
        raise ToolCrash(f"{path.name} is not named after a base offset")
    return int(stem)


def snapshot_id(path: Path) -> tuple[int, int]:
    """Parse OFFSET-EPOCH.checkpoint into offset and epoch (org.apache.kafka.snapshot.Snapshots)."""
    stem = path.name.removesuffix(".checkpoint")
    offset, epoch = stem[:20], stem[21:31]
    if not (offset.isascii() and offset.isdigit() and epoch.isascii() and epoch.isdigit()):
        raise ToolCrash(f"{path.name} is not named after an offset and an epoch")
    return int(offset), int(epoch)


def as_java(name: str) -> str:
    """Return a path as java.io.File writes it: without repeated and trailing slashes."""
    while "//" in name:
        name = name.replace("//", "/")
    return name.rstrip("/") if len(name) > 1 else name


def absolute(name: str) -> str:
    """Return a path as java.io.File.getAbsolutePath does: dots and links are not resolved."""
    return as_java(os.path.join(os.getcwd(), name))  # noqa: PTH109, PTH118 - a Path drops dots
