"""Results as folders of Parquet files, in the layout of Spark.

A folder appears completely or not at all: it is written next to its destination and renamed.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import AlreadyExists, OperationFailed, Reason, Refused

if TYPE_CHECKING:
    import pyarrow as pa

IS_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_SPARK_FILE = re.compile(r"_SUCCESS|\._SUCCESS\.crc|part-[\w.\-]+\.parquet|\.part-[\w.\-]+\.parquet\.crc")


def check_target(where: str, *, overwrite: bool, embedded: bool) -> None:
    """Check that a folder may be written. Raises AlreadyExists, Refused."""
    if IS_URI.match(where):
        return
    if not embedded:
        raise Refused(
            f"{where} is a local folder, but the executors run on other machines",
            hint="use a path that all executors can write to, for example hdfs://… or file:///shared/…",
            reason=Reason.INVALID_PATH,
        )
    folder = Path(where)
    if not folder.exists() and not folder.is_symlink():
        if not folder.absolute().parent.is_dir():
            raise Refused(
                f"{folder.absolute().parent} is not a folder", hint="create it first", reason=Reason.INVALID_PATH
            )
        return
    if not overwrite:
        raise AlreadyExists(f"{where} exists", hint="use another folder, or --overwrite to replace it")
    if folder.is_symlink() or not folder.is_dir():
        raise Refused(
            f"{where} is not a folder of Parquet files and is not replaced",
            hint="use another folder",
            reason=Reason.INVALID_PATH,
        )
    foreign = next((path.name for path in sorted(folder.iterdir()) if not _SPARK_FILE.fullmatch(path.name)), None)
    if foreign is not None:
        raise Refused(
            f"{where} contains {foreign!r}, which Spark did not write; the folder is not replaced",
            hint="use another folder",
            reason=Reason.CHANGED_MEANWHILE,
        )


def write_table(table: pa.Table, where: str) -> None:
    """Write `table` to the local folder `where`, as Spark would. Call check_target first.

    Raises OperationFailed, Refused.
    """
    import pyarrow.parquet as pq

    if IS_URI.match(where):
        raise Refused(
            f"{where} needs Spark to write it, but this report runs without Spark",
            hint="use a local folder",
            reason=Reason.INVALID_PATH,
        )

    def put(fresh: Path) -> None:
        fresh.mkdir()
        pq.write_table(table, fresh / "part-00000.parquet", compression="zstd")
        (fresh / "_SUCCESS").touch()

    written(put, where)


def written(put: Callable[[Path], None], where: str) -> None:
    """Call `put` to write a folder next to its destination, and move it there. Raises OperationFailed."""
    folder = Path(where).absolute()
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        put(fresh)
        _swap(fresh, folder)
    except OSError as exc:
        raise OperationFailed(f"cannot write {where}: {exc.strerror}") from exc
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, folder: Path) -> None:
    if folder.exists():
        old = folder.with_name(f".{folder.name}.old-{secrets.token_hex(4)}")
        folder.rename(old)
        fresh.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        fresh.rename(folder)
