"""Folders of partitions and log dirs with one defect each (see segment_defects)."""

from __future__ import annotations

from pathlib import Path

from control_records import control, footer, snapshot
from segment_defects import ABORTED, PARTS, T, case, partition, transactional
from segment_files import (
    batch,
    leader_epochs,
    offset_checkpoint,
    producer_snapshot,
    time_index,
    transaction_index,
    with_bytes,
)

# --- a partition's folder ---------------------------------------------------------------------------------------------


def second_segment(folder: Path, base: int = 30, **companions: bytes) -> list[Path]:
    """Return a segment after the one of PARTS."""
    partition(folder)
    parts = [batch(base, 10, base_timestamp=T + 300)]
    return partition(folder, parts, base=base, index=b"", timeindex=b"", **companions)


@case("segment_gap")
def a_gap_after_compaction(folder: Path) -> list[Path]:
    partition(folder, [PARTS[0], PARTS[2]], index=b"", timeindex=time_index([(T + 209, 29)]))
    return partition(folder, [batch(100)], base=100, index=b"", timeindex=b"")


@case("segment_missing")
def a_gap_without_compaction(folder: Path) -> list[Path]:
    return second_segment(folder, 50)


@case("segment_overlap")
def segments_that_overlap(folder: Path) -> list[Path]:
    return second_segment(folder, 25)


@case("file_name")
def a_log_with_another_name(folder: Path) -> list[Path]:
    (folder / "copy.log").write_bytes(b"")
    return partition(folder)


@case("file_name_digits")
def a_log_with_a_short_name(folder: Path) -> list[Path]:
    (folder / "15.log").write_bytes(b"")
    return partition(folder)


@case("vanished")
def a_link_to_nowhere(folder: Path) -> list[Path]:
    (folder / f"{30:020d}.log").symlink_to("nowhere")
    return partition(folder)


@case("leftover")
def a_deleted_partition(folder: Path) -> list[Path]:
    paths = log_dir(folder)
    (folder / "orders-0").rename(folder / f"orders-0.{'0a' * 16}-delete")
    return paths


@case("unknown_file")
def a_note_of_somebody(folder: Path) -> list[Path]:
    (folder / "README").write_text("moved here on Monday", encoding="utf-8")
    return partition(folder)


@case("leftover")
def a_deleted_segment(folder: Path) -> list[Path]:
    (folder / f"{0:020d}.log.deleted").write_bytes(b"")
    return partition(folder)


@case("snapshot")
def a_snapshot_with_a_wrong_crc(folder: Path) -> list[Path]:
    return second_segment(folder, snapshot=with_bytes(producer_snapshot(), 3, b"\xff"))


@case("snapshot_offset")
def a_snapshot_behind_the_log(folder: Path) -> list[Path]:
    (folder / f"{99:020d}.snapshot").write_bytes(producer_snapshot())
    return partition(folder)


@case("snapshot_offset")
def a_snapshot_between_segments(folder: Path) -> list[Path]:
    (folder / f"{20:020d}.snapshot").write_bytes(producer_snapshot())
    return second_segment(folder)


@case("snapshot_entry")
def a_snapshot_that_knows_the_future(folder: Path) -> list[Path]:
    return second_segment(folder, snapshot=producer_snapshot([(7, 0, 0, 30, 0, T, 0, -1)]))


@case("snapshot_transaction")
def a_snapshot_with_a_transaction_that_is_not_open(folder: Path) -> list[Path]:
    return second_segment(folder, snapshot=producer_snapshot([(7, 0, 0, 20, 0, T, 0, 20)]))


@case("snapshot_transaction")
def a_snapshot_without_an_open_transaction(folder: Path) -> list[Path]:
    (folder / f"{15:020d}.snapshot").write_bytes(producer_snapshot())
    return transactional(folder, transaction_index([ABORTED]))


@case("epochs")
def epochs_that_are_no_numbers(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 x\n")
    return partition(folder)


@case("epochs")
def a_negative_epoch(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs([(-1, 0)]))
    return partition(folder)


@case("epochs_order")
def epochs_out_of_order(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs([(1, 0), (0, 0)]))
    return partition(folder)


@case("epochs_batch")
def a_batch_of_another_epoch(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs([(0, 0), (3, 20)]))
    return partition(folder)


@case("epochs_batch")
def an_empty_epoch_checkpoint(folder: Path) -> list[Path]:
    (folder / "leader-epoch-checkpoint").write_bytes(b"")
    return partition(folder)


@case("epochs_batch")
def epochs_that_go_back(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, epoch=4), batch(1, epoch=3)], index=b"", timeindex=b"")


@case("partition_metadata")
def a_topic_id_that_is_none(folder: Path) -> list[Path]:
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", encoding="utf-8")
    return partition(folder)


# --- log dirs ---------------------------------------------------------------------------------------------------------

TOPIC_ID = "version: 0\ntopic_id: HhKSqwgGRnCLbiOCHHjq2A\n"


def kraft_snapshot(folder: Path, data: bytes) -> list[Path]:
    """Write a KRaft snapshot beside the segment of PARTS."""
    (folder / "00000000000000000007-0000000003.checkpoint").write_bytes(data)
    return partition(folder)


@case("kraft_snapshot_header")
def a_kraft_snapshot_that_is_empty(folder: Path) -> list[Path]:
    return kraft_snapshot(folder, b"")


@case("kraft_snapshot_header")
def a_kraft_snapshot_that_is_a_log(folder: Path) -> list[Path]:
    return kraft_snapshot(folder, batch(0, 3))


@case("kraft_snapshot_footer")
def a_kraft_snapshot_without_its_end(folder: Path) -> list[Path]:
    whole = snapshot()
    return kraft_snapshot(folder, whole[: whole.rindex(batch(4, [control(4, footer())], control=True))])


@case("kraft_snapshot")
def a_kraft_snapshot_with_a_flipped_bit(folder: Path) -> list[Path]:
    data = snapshot()
    return kraft_snapshot(folder, with_bytes(data, len(data) - 90, bytes([data[-90] ^ 1])))


@case("leftover")
def a_kraft_snapshot_that_was_not_completed(folder: Path) -> list[Path]:
    (folder / "00000000000000000007-0000000003-4711.checkpoint.part").write_bytes(snapshot()[:100])
    return partition(folder)


@case("quorum_state")
def a_quorum_state_that_is_empty(folder: Path) -> list[Path]:
    (folder / "quorum-state").write_bytes(b"")
    return partition(folder)


@case("quorum_state")
def a_quorum_state_without_an_epoch(folder: Path) -> list[Path]:
    state = b'{"leaderId":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    (folder / "quorum-state").write_bytes(state)
    return partition(folder)


def log_dir(path: Path, *, meta: str = "broker.id=1\ncluster.id=abc\n", **files: bytes) -> list[Path]:
    """Write a log dir with offsets 0 to 29 of orders-0. files: its checkpoints, by the first word of their names."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "meta.properties").write_text(meta, encoding="utf-8")
    for name, data in files.items():
        (path / f"{name.replace('_', '-')}-checkpoint").write_bytes(data)
    partition(path / "orders-0")
    return [path]


def beyond(offset: int) -> bytes:
    return offset_checkpoint({("orders", 0): offset})


@case("checkpoint")
def a_checkpoint_of_another_version(folder: Path) -> list[Path]:
    return log_dir(folder, replication_offset=b"1\n0\n")


@case("checkpoint")
def a_checkpoint_with_a_wrong_count(folder: Path) -> list[Path]:
    return log_dir(folder, recovery_point_offset=b"0\n2\norders 0 30\n")


@case("checkpoint_folder")
def a_partition_that_is_gone(folder: Path) -> list[Path]:
    return log_dir(folder, replication_offset=offset_checkpoint({("orders", 1): 3}))


@case("recovery_point")
def more_was_flushed_than_there_is(folder: Path) -> list[Path]:
    return log_dir(folder, recovery_point_offset=beyond(31))


@case("high_watermark")
def more_was_replicated_than_there_is(folder: Path) -> list[Path]:
    return log_dir(folder, replication_offset=beyond(31))


@case("log_start_offset")
def the_log_begins_behind_its_end(folder: Path) -> list[Path]:
    return log_dir(folder, log_start_offset=beyond(31))


@case("cleaner_offset")
def more_was_compacted_than_there_is(folder: Path) -> list[Path]:
    return log_dir(folder, cleaner_offset=beyond(31))


@case("meta_properties")
def a_node_id_that_is_no_number(folder: Path) -> list[Path]:
    return log_dir(folder, meta="version=1\nnode.id=one\ncluster.id=abc\n")


@case("meta_properties")
def no_cluster_id_where_it_must_be(folder: Path) -> list[Path]:
    return log_dir(folder, meta="version=1\nnode.id=1\n")


@case("meta_properties")
def a_line_without_a_value(folder: Path) -> list[Path]:
    return log_dir(folder, meta="broker.id\n")


@case("meta_properties_missing")
def no_meta_properties(folder: Path) -> list[Path]:
    paths = log_dir(folder)
    (folder / "meta.properties").unlink()
    return paths


@case("cluster_id")
def log_dirs_of_two_clusters(folder: Path) -> list[Path]:
    return [*log_dir(folder / "a"), *log_dir(folder / "b", meta="broker.id=2\ncluster.id=other\n")]


@case("directory_id")
def a_copied_log_dir(folder: Path) -> list[Path]:
    meta = "version=1\nnode.id={}\ncluster.id=abc\ndirectory.id=HhKSqwgGRnCLbiOCHHjq2A\n"
    return [*log_dir(folder / "a", meta=meta.format(1)), *log_dir(folder / "b", meta=meta.format(2))]


@case("partition_twice")
def a_partition_in_two_log_dirs_of_a_broker(folder: Path) -> list[Path]:
    return [*log_dir(folder / "a"), *log_dir(folder / "b")]


@case("topic_id")
def a_topic_that_was_made_again(folder: Path) -> list[Path]:
    paths = [*log_dir(folder / "a"), *log_dir(folder / "b", meta="broker.id=2\ncluster.id=abc\n")]
    for path, text in zip(paths, (TOPIC_ID, TOPIC_ID.replace("Hh", "Ii")), strict=True):
        (path / "orders-0" / "partition.metadata").write_text(text, encoding="utf-8")
    return paths


@case("folder_name")
def a_folder_of_the_file_system(folder: Path) -> list[Path]:
    (folder / "lost+found").mkdir(parents=True)
    return log_dir(folder)


@case("folder_name")
def a_partition_that_was_renamed(folder: Path) -> list[Path]:
    paths = log_dir(folder)
    (folder / "orders-0").rename(folder / "orders")
    return paths


# --- anywhere ---------------------------------------------------------------------------------------------------------


@case("unreadable")
def a_log_that_is_a_folder(folder: Path) -> list[Path]:
    partition(folder)
    path = folder / f"{30:020d}.index"
    path.mkdir()
    (folder / f"{30:020d}.log").write_bytes(b"")
    return [folder]


@case("too_large")
def a_checkpoint_of_gigabytes(folder: Path) -> list[Path]:
    with (folder / "leader-epoch-checkpoint").open("wb") as file:
        file.truncate(3 << 30)
    return partition(folder)


@case("batch_too_large")
def a_batch_larger_than_the_largest_message(folder: Path) -> list[Path]:
    return partition(folder, [batch(0, payload=bytes(6 << 20))], index=b"", timeindex=b"")
