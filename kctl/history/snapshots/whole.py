"""Check that the files of a span exist and are complete, for tables of which a report reads only a part.

A report reads logs and configs only from the newest passes. Damage in an older file does not affect its values, but is
reported, because later reports will need the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from kctl.history.snapshots import files, footer, schema
from kctl.history.snapshots.layout import DataFile, Hour
from kctl.history.snapshots.read import chosen_files, read_table
from kctl.history.snapshots.remote import is_remote
from kctl.history.snapshots.store import Damaged, Store


def check_files(
    store: Store, tables: Collection[str], from_ms: int, to_ms: int, *, damaged: Callable[[Damaged], None]
) -> None:
    """Report each file of the tables in [from_ms, to_ms) that is missing or has no footer with a valid checksum.

    Pages are not read. Remote stores are not checked: each file would be a request.
    """
    if is_remote(store.root):
        return
    with_rows = _with_rows(store, from_ms, to_ms)
    for hour, file in chosen_files(store, from_ms, to_ms, phase="checking files"):
        first = hour.start_ms if file.compacted else file.at_ms
        expected = {table for at_ms, names in with_rows if first <= at_ms <= file.at_ms for table in names}
        for each in _damaged(store, hour, file, tables, expected):
            damaged(each)


def _with_rows(store: Store, from_ms: int, to_ms: int) -> list[tuple[int, list[str]]]:
    """Return the passes and the tables in which they have rows. Readers of `passes` report damage to it."""
    batches = read_table(store, schema.PASSES, from_ms, to_ms, damaged=lambda _: None, columns=("at_ms", "tables"))
    return [(row["at_ms"], row["tables"] or []) for batch in batches for row in batch.to_pylist()]


def _damaged(
    store: Store, hour: Hour, file: DataFile, tables: Collection[str], expected: Collection[str]
) -> Iterator[Damaged]:
    for table in tables:
        path = store.folder(table, hour) / file.name
        try:
            with files.opened(path) as stream:
                footer.check(stream)
        except FileNotFoundError:
            if table in expected and file in store.valid_files(hour).files:
                yield Damaged(path, "it is missing")
        except (footer.BadFooter, OSError) as exc:
            yield Damaged(path, footer.reason_of(exc))
