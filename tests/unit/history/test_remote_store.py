"""Stores that are read over the network: which URIs, and that the rows are those of the same store in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed, UsageError
from kctl.history.evaluate.store_access import store_here
from kctl.history.snapshots import schema
from kctl.history.snapshots.passes import newest_ms, passes
from kctl.history.snapshots.remote import RemotePath, is_remote, parse_location, text_of
from kctl.history.snapshots.store import Damaged, open_store
from object_store import ObjectStore, object_store
from snapshot_stores import FOREVER, HOUR, compact_all, no_damage, seen, store_with


@pytest.mark.parametrize(
    ("text", "shown", "again"),
    [
        ("s3a://bucket/kctl/", "s3://bucket/kctl", "s3://bucket/kctl"),
        ("s3://b/x?region=eu-west-1", "s3://b/x", "s3://b/x?region=eu-west-1"),
        ("hdfs:///kctl", "hdfs:///kctl", "hdfs:///kctl"),
        ("HDFS://nn:9000/a/b", "hdfs://nn:9000/a/b", "hdfs://nn:9000/a/b"),
    ],
)
def test_places_over_the_network(text: str, shown: str, again: str) -> None:
    found = parse_location(text)
    assert is_remote(found)
    assert (str(found), text_of(found)) == (shown, again)
    assert parse_location(again) == found
    below = found / "commits" / "date=2026-01-01"
    assert (str(below), below.name, below.parent) == (
        f"{shown}/commits/date=2026-01-01", "date=2026-01-01", found / "commits",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path"), [("a/b", Path("a/b")), ("/x", Path("/x")), ("file:///a%20b", Path("/a b")), ("c:d", Path("c:d"))]
)
def test_folders(text: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_location(text) == path
    assert text_of(parse_location(text)) == str(tmp_path / path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mesos://x/y", "cannot read stores at mesos://"),
        ("http://x/y", "cannot read stores at http://"),
        ("s3://id:hidden@bucket/x", "contains credentials"),
        ("s3://bucket/x?secret_key=hidden", "contains credentials"),
        ("hdfs://host:port/x", "is not a valid URI"),
        ("hdfs://[::1/x", "is not a valid URI"),
    ],
)
def test_what_is_no_place(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        parse_location(text)
    assert "hidden" not in f"{caught.value.message} {caught.value.hint}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ObjectStore, Path]]:
    """A bucket with a store: two passes that were compacted, and one beside them."""
    buckets = tmp_path_factory.mktemp("buckets")
    (buckets / "ops").mkdir()
    store = store_with(buckets / "ops" / "kctl", [0, 60_000])
    compact_all(store)
    store_with(buckets / "ops" / "kctl", [120_000])
    names = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_EC2_METADATA_DISABLED": "true"}
    with pytest.MonkeyPatch.context() as patch, object_store(buckets) as server:
        for name, value in names.items():
            patch.setenv(name, value)
        yield server, store.root


def _uri(server: ObjectStore, name: str, address: str | None = None) -> str:
    return f"s3a://ops/{name}?scheme=http&region=x&endpoint_override={address or server.address}"


def test_the_rows_are_those_of_the_folder(served: tuple[ObjectStore, Path]) -> None:
    server, folder = served
    there, here = store_here(_uri(server, "kctl")), open_store(folder)
    assert seen(there) == seen(here)
    assert newest_ms(there) == HOUR.start_ms + 120_000
    assert passes(there, *FOREVER, damaged=no_damage) == passes(here, *FOREVER, damaged=no_damage)


def test_what_is_damaged_is_named(served: tuple[ObjectStore, Path]) -> None:
    server, folder = served
    store = open_store(folder)
    file = next(path for path in sorted(store.folder(schema.COMMITS, HOUR).iterdir()))
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    damaged: list[Damaged] = []
    try:
        seen(store_here(_uri(server, "kctl")), damaged)
    finally:
        file.write_bytes(whole)
    assert {str(each.path) for each in damaged} == {f"s3://ops/{file.relative_to(folder.parent)}"}


def test_what_is_not_there(served: tuple[ObjectStore, Path]) -> None:
    server, _ = served
    with pytest.raises(NotFound, match=r"s3://ops/none is not a snapshot store"):
        open_store(parse_location(_uri(server, "none")))
    with pytest.raises(KctlError, match=rf"cannot be read on {os.uname().nodename}"):
        store_here(_uri(server, "none"))


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow finds Hadoop's library by these."""
    for name in ("HADOOP_HOME", "JAVA_HOME", "ARROW_LIBHDFS_DIR", "CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises((NotSupported, OperationFailed)) as caught:
        open_store(parse_location("hdfs://127.0.0.1:1/kctl"))
    assert "hdfs://" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_path_is_its_parts() -> None:
    assert (RemotePath("s3://b/x") / "a" / "b").below == "/a/b"
    assert len({parse_location("s3://b/x"), parse_location("s3a://b/x/")}) == 1
