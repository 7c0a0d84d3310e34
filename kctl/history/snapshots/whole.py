"""Which files of a span are there, and whole as far as their ends tell: for tables that a report reads a part of.

A report takes logs and configs from the newest passes alone. A file of an earlier one that is damaged takes nothing
away from its figures; the person who keeps the store is told even so, because later reports will want it.
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
    """Tell of each file of the tables that counts, can have rows in [from_ms, to_ms), and is missing or has no footer
    with the right checksum. Pages are not read.

    Nothing is told of a store that is read over the network: each file would be a request.
    """
    if is_remote(store.root):
        return
    with_rows = _with_rows(store, from_ms, to_ms)
    for hour, file in chosen_files(store, from_ms, to_ms):
        first = hour.start_ms if file.compacted else file.at_ms
        expected = {table for at_ms, own in with_rows if first <= at_ms <= file.at_ms for table in own}
        for each in _damaged(store, hour, file, tables, expected):
            damaged(each)


def _with_rows(store: Store, from_ms: int, to_ms: int) -> list[tuple[int, list[str]]]:
    """The passes, and which tables have rows of them. Damage to `passes` itself is told by those who read them."""
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
            if table in expected and file in store.counting(hour).files:
                yield Damaged(path, "it is missing")
        except (footer.BadFooter, OSError) as exc:
            yield Damaged(path, footer.reason_of(exc))
