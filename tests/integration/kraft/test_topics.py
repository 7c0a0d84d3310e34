"""kctl topic against a broker of 4.x without ZooKeeper: what is changed there is read back all the same."""

from __future__ import annotations

from kctl_testing import Kctl


def test_alter_truncate_clone_apply_delete(own_kctl: Kctl, kraft: str) -> None:
    kctl, at = own_kctl, ("--bootstrap-server", kraft)
    kctl.ok("topic", "create", "kraft-topics", "--partitions", "2", *at)
    (altered,) = kctl.json(
        "topic", "alter", "kraft-topics", "--partitions", "3", "--config", "retention.ms=7200000", "--yes", *at
    )
    assert (altered["result"], altered["partition_count_after"]) == ("altered", 3)
    assert [(c["result"], c["after"]) for c in altered["config_changes"]] == [("set", "7200000")]
    kctl.ok("produce", "kraft-topics", "--partition", "0", *at, stdin="x\n" * 10)
    assert kctl.json("topic", "clone", "kraft-topics", "kraft-topics.copy", "--data", *at)["records"] == 10
    done = kctl.json("topic", "truncate", "kraft-topics", "--before-offset", "4", "--partitions", "0", "--yes", *at)
    assert [row["low_watermark"] for row in done] == [4]
    listed = kctl.json("topic", "list", "--match", "kraft-topics.*", "--size", "--count", *at)
    assert [(row["topic"], row["messages"]) for row in listed] == [("kraft-topics", 6), ("kraft-topics.copy", 10)]
    for spec in ("latest-tiered", "earliest-pending-upload"):
        (offsets,) = kctl.json("topic", "offsets", "kraft-topics", "--partitions", "0", "--time", spec, *at)
        assert offsets["offset"] is None
    wrong = kctl("topic", "alter", "kraft-topics", "--config", "retention.ms=soon", "--yes", *at)
    assert wrong.code == 4
    names = ("kraft-topics", "kraft-topics.copy")
    assert [row["result"] for row in kctl.json("topic", "delete", *names, "--yes", *at)] == ["deleted", "deleted"]
