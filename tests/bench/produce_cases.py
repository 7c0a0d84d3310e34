"""Writing records beside Kafka's console producer: the same lines to the same topic of three replicas."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import replace
from pathlib import Path

from cases import Setting
from kctl_testing import SCRIPT
from measure import Figures

_SIZES = {100: 500_000, 1000: 100_000}  # bytes of a record → records
_TEXT = "abcdefghij klmnopqrst uvwxyz 0123456789 "


def produce(setting: Setting) -> dict[str, Figures]:
    """Lines of 100 B and 1 kB from a file, acks=all; both are idempotent by default."""
    servers = setting.cluster()
    setting.kctl.ok(
        "topic", "create", "written", "--partitions", "3", "--replication-factor", "3", "--if-not-exists",
        "--config", "retention.bytes=200000000", "--config", "segment.bytes=50000000",
    )  # fmt: skip
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="kctl-bench-lines-") as folder:
        for size, count in _SIZES.items():
            path = Path(folder) / f"{size}"
            _write(path, size, count)
            tool = [
                "java", "-Xmx256M", "-cp", f"{setting.libs}/*", "kafka.tools.ConsoleProducer",
                "--bootstrap-server", servers, "--topic", "written",
            ]  # fmt: skip
            found = setting.measure(
                {
                    f"ConsoleProducer, {size} B": ["sh", "-c", f"exec {shlex.join(tool)} < {shlex.quote(str(path))}"],
                    f"kctl produce, {size} B": [
                        str(SCRIPT), "produce", "written", "--file", str(path), "--bootstrap-server", servers,
                    ],
                }
            )  # fmt: skip
            figures |= {name: replace(figure, rows=count) for name, figure in found.items()}
    return figures


def _write(path: Path, size: int, count: int) -> None:
    filling = _TEXT * (size // len(_TEXT) + 1)
    with path.open("w") as file:
        file.writelines(f"{number:010d} {filling}"[: size - 1] + "\n" for number in range(count))
