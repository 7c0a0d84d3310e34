"""The tables of the snapshot store: columns, their order within a file, and their encoding.

A pass is one snapshot of the cluster. Its time, `at_ms` (start of the pass in UTC milliseconds since 1970), is in each
of its rows and identifies it: times are unique within a store. All values that a pass reads between at_ms and its
ended_ms count as read at at_ms.

- `commits`: a partition with a commit of a group, or assigned to one of its members. committed_offset null: assigned,
  without a commit. deleted: the topic or partition does not exist (its offsets are null); other null offsets could not
  be read. leader_epoch and topic_id are the partition's, not the commit's: a different topic_id is a different topic
  of the same name (null on brokers before 2.8).
- `groups`: each listed group. state, protocol_type and coordinator as reported by brokers; members null: not requested.
- `owners`: each partition that is assigned to a member.
- `logs`: each partition of the cluster, from its leader. log_end_offset is the high watermark; last_stable_offset is
  lower while transactions are open; oldest_timestamp_ms is that of the first record (null: empty, or unknown).
  leader -1: none.
- `replicas`: each replica in a log dir; future: a replica that is being moved to that log dir.
- `log_dirs`: each log dir. Sizes are those of its volume, null on brokers before 3.3; error: why it is offline.
- `configs`: the configs of a topic, stored after changes and at least once per hour.
- `passes`: the result of each pass, which makes it valid: rows of other tables without it belong to an unfinished pass.
  complete: everything was read; `failures` lists what was not. tables: those in which the pass has rows. interval_ms:
  of the collector, null for a single pass. missed: number of due passes that were skipped before this one because
  an earlier pass took too long.

Rows are sorted by `SORT_KEYS` within each file; row groups have ranges, so that a reader can read a range of groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "kctl-snapshots"
VERSION = 1

COMMITS, GROUPS, OWNERS, LOGS = "commits", "groups", "owners", "logs"
REPLICAS, LOG_DIRS, CONFIGS, PASSES = "replicas", "log_dirs", "configs", "passes"

# Columns as (name, type, nullable). Types are names of Arrow types, which keeps the import of this module cheap.
_Column = tuple[str, str, bool]
_AT: _Column = ("at_ms", "int64", False)

COLUMNS: dict[str, tuple[_Column, ...]] = {
    COMMITS: (
        _AT,
        ("group", "string", False),
        ("topic", "string", False),
        ("partition", "int32", False),
        ("committed_offset", "int64", True),
        ("log_start_offset", "int64", True),
        ("log_end_offset", "int64", True),
        ("leader_epoch", "int32", True),
        ("topic_id", "string", True),
        ("deleted", "bool", False),
    ),
    GROUPS: (
        _AT,
        ("group", "string", False),
        ("state", "string", False),
        ("type", "string", True),
        ("protocol_type", "string", False),
        ("members", "int32", True),
        ("coordinator", "int32", False),
    ),
    OWNERS: (
        _AT,
        ("group", "string", False),
        ("topic", "string", False),
        ("partition", "int32", False),
        ("member_id", "string", False),
        ("client_id", "string", False),
        ("host", "string", False),
    ),
    LOGS: (
        _AT,
        ("topic", "string", False),
        ("partition", "int32", False),
        ("topic_id", "string", True),
        ("leader", "int32", False),
        ("leader_epoch", "int32", True),
        ("log_start_offset", "int64", True),
        ("log_end_offset", "int64", True),
        ("last_stable_offset", "int64", True),
        ("oldest_timestamp_ms", "int64", True),
    ),
    REPLICAS: (
        _AT,
        ("broker", "int32", False),
        ("log_dir", "string", False),
        ("topic", "string", False),
        ("partition", "int32", False),
        ("size_bytes", "int64", False),
        ("offset_lag", "int64", False),
        ("future", "bool", False),
    ),
    LOG_DIRS: (
        _AT,
        ("broker", "int32", False),
        ("log_dir", "string", False),
        ("total_bytes", "int64", True),
        ("usable_bytes", "int64", True),
        ("error", "string", True),
    ),
    CONFIGS: (
        _AT,
        ("topic", "string", False),
        ("cleanup_policy", "string", True),
        ("retention_ms", "int64", True),
        ("retention_bytes", "int64", True),
        ("segment_bytes", "int64", True),
        ("segment_ms", "int64", True),
        ("delete_retention_ms", "int64", True),
        ("min_compaction_lag_ms", "int64", True),
        ("max_compaction_lag_ms", "int64", True),
        ("min_cleanable_dirty_ratio", "double", True),
    ),
    PASSES: (
        _AT,
        ("ended_ms", "int64", False),
        ("complete", "bool", False),
        ("failures", "list<string>", False),
        ("tables", "list<string>", False),
        ("interval_ms", "int64", True),
        ("missed", "int32", False),
    ),
}

TABLES = tuple(COLUMNS)

# Keys are unique within a table.
SORT_KEYS: dict[str, tuple[str, ...]] = {
    COMMITS: ("group", "topic", "partition", "at_ms"),
    GROUPS: ("group", "at_ms"),
    OWNERS: ("group", "topic", "partition", "at_ms"),
    LOGS: ("topic", "partition", "at_ms"),
    REPLICAS: ("topic", "partition", "broker", "log_dir", "future", "at_ms"),
    LOG_DIRS: ("broker", "log_dir", "at_ms"),
    CONFIGS: ("topic", "at_ms"),
    PASSES: ("at_ms",),
}

ROW_GROUP_ROWS = 100_000

# Offsets, sizes and timestamps change little from row to row in a sorted file. Columns with few values per row group
# (names, times of passes, partition numbers, leaders) are dictionary-encoded.
_DELTA = frozenset({
    "committed_offset", "log_start_offset", "log_end_offset", "last_stable_offset", "oldest_timestamp_ms",
    "size_bytes", "offset_lag", "total_bytes", "usable_bytes", "ended_ms",
})  # fmt: skip


def delta_columns(table: str) -> list[str]:
    """Return the columns that are written as DELTA_BINARY_PACKED."""
    return [name for name, _, _ in COLUMNS[table] if name in _DELTA]


def dictionary_columns(table: str) -> list[str]:
    """Return the columns that are written with a dictionary: all others that support one."""
    return [name for name, kind, _ in COLUMNS[table] if name not in _DELTA and kind not in {"bool", "list<string>"}]


def text_columns(table: str) -> list[str]:
    """Return the columns that can be read as dictionaries (pyarrow's read_dictionary)."""
    return [name for name, kind, _ in COLUMNS[table] if kind == "string"]


def arrow_schema(table: str) -> pa.Schema:
    """Return the schema of a table. Raises KeyError for an unknown table."""
    import pyarrow as pa

    types = {
        "int32": pa.int32(), "int64": pa.int64(), "string": pa.string(), "bool": pa.bool_(), "double": pa.float64(),
        "list<string>": pa.list_(pa.string()),
    }  # fmt: skip
    return pa.schema([pa.field(name, types[kind], nullable=null) for name, kind, null in COLUMNS[table]])
