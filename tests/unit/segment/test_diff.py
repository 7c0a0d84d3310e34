"""kctl segment diff: what two replicas have in common, where they diverge, and what would be cut off."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kctl.commands.app import main
from kctl.segment.diff.diff import LackReason
from kctl.segment.diff.epoch_truncation import EpochHistory, history, truncation
from kctl.segment.diff.report import DiffReport, DiffVerdict, diff
from kctl.segment.log.partition_log import partition_log
from segment_files import BASE_TIMESTAMP, Rec, batch, leader_epochs, marker, with_bytes, write

pytestmark = pytest.mark.usefixtures("one_command_tree")
DATA = Path(__file__).parents[2] / "data" / "segments"


def replica(tmp_path: Path, name: str, parts: list[bytes], *, base: int = 0, epochs: str | None = None) -> Path:
    folder = tmp_path / name / "orders-0"
    write(folder, base, parts)
    if epochs is not None:
        entries = [tuple(map(int, each.split(":"))) for each in epochs.split()]
        (folder / "leader-epoch-checkpoint").write_bytes(leader_epochs(entries))  # type: ignore[arg-type]
    return folder


def compared(one: Path, two: Path, *, compacted: bool = False) -> DiffReport:
    """Both ways round: nothing depends on which comes first."""
    there = diff(partition_log(one), partition_log(two), compacted=compacted)
    back = diff(partition_log(two), partition_log(one), compacted=compacted)
    assert there.verdict is back.verdict
    assert (there.first, there.second) == (back.second, back.first)
    assert sorted(map(str, there.lacks)) == sorted(map(str, back.lacks))
    assert there.divergent == back.divergent
    return there


def lacks(found: DiffReport) -> list[tuple[str, int, int, int | None, str]]:
    """(whose, from, to, records, why)."""
    return [
        (Path(e.path).parent.name, e.first_offset, e.last_offset, e.records, e.where.value)
        for e in found.lacks
    ]  # fmt: skip


# --- the same -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v0/snappy", "v1/lz4", "v1/mixed", "v2/none", "v2/compact", "v2/txn"])
def test_a_replica_is_the_same_as_its_copy(tmp_path: Path, name: str) -> None:
    shutil.copytree(DATA / name, tmp_path / "copy")
    found = compared(DATA / name, tmp_path / "copy")
    assert found.verdict is DiffVerdict.SAME
    assert (found.equal_records, found.equal_batches) == (0, found.first.batches)  # none had to be decoded


@pytest.mark.parametrize(("one", "two"), [("v2/none", "v2/gzip"), ("v2/none", "v2/zstd"), ("v0/none", "v0/snappy")])
def test_other_batches_with_the_same_records_are_the_same(one: str, two: str) -> None:
    found = compared(DATA / one, DATA / two)
    assert (found.verdict, found.equal_records) == (DiffVerdict.SAME, 120)
    assert [text[:26] for text in found.meaning] == ["The folders are not replic"] * one.startswith("v2")


def test_old_formats_lack_headers_and_timestamps() -> None:
    """The same records were written to v0 and v1: a conversion to v0 is no divergence."""
    found = compared(DATA / "v0/none", DATA / "v1/none")
    assert found.verdict is DiffVerdict.SAME
    assert found.equal_records == 120


def test_batches_of_any_extent() -> None:
    """Two single segments of the same folder: nothing in common."""
    one, two = (DATA / "v2/none" / f"{offset:020d}.log" for offset in (0, 36))
    found = compared(one, two)
    assert found.verdict is DiffVerdict.BEHIND
    assert found.meaning[0].startswith("They have no common offsets")


# --- more or less ---------------------------------------------------------------------------------------------------

PARTS = [batch(10 * number, 10, base_timestamp=BASE_TIMESTAMP + number) for number in range(6)]


def test_a_follower_behind(tmp_path: Path) -> None:
    found = compared(replica(tmp_path, "a", PARTS), replica(tmp_path, "b", PARTS[:4]))
    assert (found.verdict, lacks(found)) == (DiffVerdict.BEHIND, [("b", 40, 59, 20, "end")])
    assert "it is behind by 20 records" in found.meaning[0]


def test_a_log_that_begins_later(tmp_path: Path) -> None:
    found = compared(replica(tmp_path, "a", PARTS), replica(tmp_path, "b", PARTS[3:], base=30))
    assert (found.verdict, lacks(found)) == (DiffVerdict.BEHIND, [("b", 0, 29, 30, "start")])


def test_a_log_start_offset_within_a_batch(tmp_path: Path) -> None:
    two = replica(
        tmp_path, "b", [batch(20, [Rec(offset=5 + n, timestamp=5 + n) for n in range(5)]), *PARTS[3:]], base=20
    )
    (two.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 25\n")
    one = replica(tmp_path, "a", [*PARTS[:2], batch(20, 10), *PARTS[3:]])
    found = compared(one, two)
    assert (found.verdict, lacks(found)) == (DiffVerdict.BEHIND, [("b", 0, 24, 25, "start")])
    assert found.equal_records == 5


def test_a_hole(tmp_path: Path) -> None:
    one, two = replica(tmp_path, "a", PARTS), replica(tmp_path, "b", [PARTS[0], *PARTS[2:]])
    found = compared(one, two)
    assert (found.verdict, lacks(found)) == (DiffVerdict.LACKS_RECORDS, [("b", 10, 19, 10, "hole")])
    assert compared(one, two, compacted=True).verdict is DiffVerdict.BEHIND
    (two.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    found = compared(one, two)
    assert (found.verdict, lacks(found)) == (DiffVerdict.BEHIND, [("b", 10, 19, 10, "compaction")])


def test_compaction_that_went_further_on_one_side(tmp_path: Path) -> None:
    def kept(*offsets: int) -> bytes:
        return batch(0, [Rec(f"k{n}".encode(), offset=n, timestamp=n) for n in offsets], last_offset_delta=9)

    one = replica(tmp_path, "a", [kept(*range(10)), PARTS[1]])
    two = replica(tmp_path, "b", [kept(2, 3, 7), PARTS[1]])
    found = compared(one, two, compacted=True)
    assert lacks(found) == [
        ("b", 0, 1, 2, "compaction"), ("b", 4, 6, 3, "compaction"), ("b", 8, 9, 2, "compaction"),
    ]  # fmt: skip
    assert (found.verdict, found.equal_records, found.equal_batches) == (DiffVerdict.BEHIND, 3, 1)


def test_a_batch_that_compaction_emptied_lacks_nothing(tmp_path: Path) -> None:
    empty = batch(0, [], last_offset_delta=9)
    found = compared(replica(tmp_path, "a", [empty, PARTS[1]]), replica(tmp_path, "b", [PARTS[1]]))
    assert found.verdict is DiffVerdict.SAME


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        ([PARTS[0], with_bytes(PARTS[1], 80, b"\xff"), *PARTS[2:]], ("b", 10, 19, 10, "damage")),
        ([PARTS[0], b"\xff" * 50, *PARTS[2:]], ("b", 10, 19, 10, "damage")),
        ([*PARTS[:5], PARTS[5][:-1]], ("b", 50, 59, 10, "damage")),
        ([PARTS[0], batch(10, 10, payload=b"\x80" * 30), *PARTS[2:]], ("b", 10, 19, 10, "damage")),
    ],
    ids=["bit", "garbage", "cut", "payload"],
)
def test_damage(tmp_path: Path, damaged: list[bytes], why: tuple[str, int, int, int, str]) -> None:
    found = compared(replica(tmp_path, "a", PARTS), replica(tmp_path, "b", damaged))
    assert (found.verdict, lacks(found)) == (DiffVerdict.DAMAGED, [why])
    assert (found.first.damaged, found.second.damaged) == (0, 1)
    position = sum(map(len, damaged[: damaged.index(next(p for p in damaged if p not in PARTS))]))
    assert f"{0:020d}.log at {position}: " in found.damage[0]


def test_a_checkpoint_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    one, two = (replica(tmp_path, name, PARTS) for name in "ab")
    (two / "leader-epoch-checkpoint").write_text("0\n7\n1 1\n")
    found = compared(one, two)
    assert (found.verdict, found.second.epochs_from) == (DiffVerdict.DAMAGED, "batches")


# --- divergence -----------------------------------------------------------------------------------------------------


def unclean(tmp_path: Path) -> tuple[Path, Path]:
    """The leader of epoch 1 wrote up to 50 and failed; one that had 30 was elected, and wrote in epoch 2 up to 44."""
    common = [batch(10 * number, 10, epoch=int(number > 0)) for number in range(3)]
    old = [batch(30, [Rec(b"k", b"old")] * 10, epoch=1), batch(40, [Rec(b"k", b"old")] * 10, epoch=1)]
    new = [batch(30, [Rec(b"k", b"new")] * 5, epoch=2), batch(35, [Rec(b"k", b"new")] * 9, epoch=2)]
    return (
        replica(tmp_path, "old", [*common, *old], epochs="0:0 1:10"),
        replica(tmp_path, "new", [*common, *new], epochs="0:0 1:10 2:30"),
    )


def test_an_unclean_election(tmp_path: Path) -> None:
    one, two = unclean(tmp_path)
    found = compared(one, two)
    assert found.verdict is DiffVerdict.DIVERGENT
    assert found.divergence is not None
    assert (found.divergence.offset, sorted(found.divergence.differs)) == (30, ["epoch", "value"])
    assert (found.divergence.first.leader_epoch, found.divergence.second.leader_epoch) == (1, 2)
    assert found.divergence.first.record is not None
    assert found.divergence.first.record.value == "old"
    (where,) = found.divergent
    assert (where.first_offset, where.last_offset, where.records, found.divergent_records) == (30, 43, 14, 14)
    assert lacks(found) == [("new", 44, 49, 6, "end")]
    assert [(each.epoch, each.first_start, each.second_start) for each in found.epochs] == [(2, None, 30)]
    cut = {(Path(e.leader).parent.name, e.offset, e.lost_offsets, e.mends) for e in found.truncations}
    assert cut == {("old", 30, 14, True), ("new", 30, 20, True)}
    assert "written by two leaders: in epoch 1 in" in found.meaning[0]


def test_epochs_of_batches_serve_where_there_is_no_checkpoint(tmp_path: Path) -> None:
    one, two = unclean(tmp_path)
    (one / "leader-epoch-checkpoint").unlink()
    (two / "leader-epoch-checkpoint").unlink()
    found = compared(one, two)
    assert [each.offset for each in found.truncations] == [30, 30]
    assert found.first.epochs_from == "batches"


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        (Rec(b"K", b"v"), "key"),
        (Rec(b"k", b"V"), "value"),
        (Rec(b"k", None), "value"),
        (Rec(None, b"v"), "key"),
        (Rec(b"k", b"v", timestamp=99), "timestamp"),
        (Rec(b"k", b"v", headers=[(b"h", None)]), "headers"),
    ],
)
def test_a_change_within_an_epoch(tmp_path: Path, changed: Rec, differs: str) -> None:
    same = [Rec(b"k", b"v")] * 4
    one = replica(tmp_path, "a", [batch(0, [*same, same[0]])])
    two = replica(tmp_path, "b", [batch(0, [*same, changed], codec="lz4")])
    found = compared(one, two)
    assert found.divergence is not None
    assert (found.divergence.offset, found.divergence.differs, found.equal_records) == (4, [differs], 4)
    assert "modified outside Kafka" in found.meaning[0]
    assert [each.mends for each in found.truncations] == [
        False,
        False,
    ]  # the epochs are the same: nobody would notice


def test_the_same_batch_of_two_epochs_diverges(tmp_path: Path) -> None:
    """The epoch is not under the CRC."""
    one, two = replica(tmp_path, "a", [batch(0, 3, epoch=4)]), replica(tmp_path, "b", [batch(0, 3, epoch=5)])
    found = compared(one, two)
    assert found.divergence is not None
    assert (found.divergence.offset, found.divergence.differs) == (0, ["epoch"])


def test_a_marker_and_a_record_diverge(tmp_path: Path) -> None:
    one = replica(tmp_path, "a", [marker(0, (7, 0))])
    two = replica(tmp_path, "b", [batch(0, [Rec(b"\0\0\0\1", b"\0\0\0\0\0\0")])])
    found = compared(one, two)
    assert found.divergence is not None
    assert found.divergence.differs == ["control"]


# --- truncation by epochs (KIP-101, KIP-279) ------------------------------------------------------------------------


def _history(text: str, end: int) -> EpochHistory:
    return history([(int(e), int(s)) for e, s in (each.split(":") for each in text.split())], end)


@pytest.mark.parametrize(
    ("leader", "follower", "expected"),
    [
        (("0:0", 10), ("0:0", 10), 10),  # nothing to cut off
        (("0:0", 10), ("0:0", 15), 10),  # it has more of the same epoch
        (("0:0", 15), ("0:0", 10), 10),
        (("0:0 2:5", 9), ("0:0 1:5", 8), 5),  # KIP-101
        (("0:0 1:3", 9), ("0:0 2:5", 8), 3),  # KIP-279: the leader's last epoch is unknown to the follower
        (("0:0 1:3 4:7", 9), ("0:0 2:5 3:6", 8), 3),
        (("0:0 1:3", 4), ("0:0 1:3 2:6", 8), 4),  # a leader that is behind: an unclean election
        (("5:0", 9), ("2:0 3:4", 8), 0),  # no epoch in common
        (("", 9), ("0:0", 8), None),  # the formats before magic 2 have no epochs
        (("0:0", 9), ("", 8), None),
    ],
)
def test_truncation(leader: tuple[str, int], follower: tuple[str, int], expected: int | None) -> None:
    assert truncation(_history(*leader), _history(*follower)) == expected


def test_a_history_out_of_order_is_bounded() -> None:
    assert history([(3, 5), (3, 6), (2, 9), (4, 1), (7, 8)], 20).epochs == ((3, 5), (7, 8))


# --- the command ----------------------------------------------------------------------------------------------------


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = map(str, unclean(tmp_path))
    behind = str(replica(tmp_path, "behind", [batch(0, 10, epoch=0)]))
    for args, code, message in [
        ([one, two], 1, "the replicas diverge at offset 30"),
        ([one, one], 0, ""),
        ([one, behind], 0, "it is behind by 40 records"),
        ([one, str(tmp_path / "nowhere")], 4, "does not exist"),
        ([one, str(tmp_path)], 2, "has no log segment"),
    ]:
        assert main(["segment", "diff", *args]) == code
        assert message in capsys.readouterr().err
    assert main(["segment", "diff", one, two, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["divergence"]["offset"], found["divergence"]["second"]["leader_epoch"]) == (
        "divergent", 30, 2,
    )  # fmt: skip


def test_many_ranges_are_counted_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.segment.diff.diff.MAX_RANGES", 3)
    one = replica(tmp_path, "a", [batch(0, 40)])
    two = replica(tmp_path, "b", [batch(0, [Rec(offset=n, timestamp=n) for n in range(0, 40, 2)])])
    found = diff(partition_log(one), partition_log(two))
    assert (len(found.lacks), found.lacking_ranges, found.lacks[0].where) == (3, 20, LackReason.HOLE)
