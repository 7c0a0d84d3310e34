"""Layouts: what options give which cluster, and what cannot be."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kctl.deploy.layout import ClusterSpec, check_chroot, check_directory, check_name, heap_bytes, spec_to_json
from kctl.deploy.layout_request import LayoutRequest, build_spec, check_request, port_count, racks
from kctl.deploy.store import parse_spec
from kctl.errors import InvalidFile, NotFound, UsageError


def spec_of(layout: str, **options: Any) -> ClusterSpec:
    """A cluster in /c with ports from 9000."""
    request = LayoutRequest(name="dev", layout=layout, **options)
    check_request(request)
    return build_spec(
        request, directory=Path("/c/dev"), base_port=9000, kafka_version="3.9.2", kafka_libs=Path("/k/libs"),
        created_at="2026-01-31T12:00:00Z",
    )  # fmt: skip


LAYOUTS: dict[str, tuple[dict[str, Any], list[tuple[int, ...]], list[int]]] = {
    "single": ({}, [(9001,)], [9000]),
    "pseudo-distributed": ({}, [(9003,)], [9000, 9001, 9002]),
    "three-node": ({}, [(9003, 9006, 9009), (9004, 9007, 9010), (9005, 9008, 9011)], [9000, 9001, 9002]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(layout: str) -> None:
    options, zookeepers, brokers = LAYOUTS[layout]
    spec = spec_of(layout, **options)
    assert [z.ports for z in spec.zookeepers] == zookeepers
    assert [z.id for z in spec.zookeepers] == list(range(1, len(zookeepers) + 1))
    assert [b.port for b in spec.brokers] == brokers
    assert [b.id for b in spec.brokers] == list(range(1, len(brokers) + 1))
    assert spec.ports == set(range(9000, 9000 + port_count(LayoutRequest(name="dev", layout=layout))))
    assert spec.bootstrap_servers == tuple(f"127.0.0.1:{p}" for p in brokers)
    assert spec.zookeeper_connect == ",".join(f"127.0.0.1:{z[0]}" for z in zookeepers) + "/kafka"


# Layout and options: ports of the brokers, controller ports of combined nodes, ports of dedicated controllers.
KRAFT: dict[str, tuple[dict[str, Any], list[int], list[int], list[int]]] = {
    "single": ({"layout": "kraft-single"}, [9000], [9001], []),
    "combined": ({"layout": "kraft-combined"}, [9000, 9001, 9002], [9003, 9004, 9005], []),
    "combined, five": ({"layout": "kraft-combined", "brokers": 5}, [*range(9000, 9005)], [*range(9005, 9010)], []),
    "separate": ({"layout": "kraft-separate"}, [9000, 9001, 9002], [0, 0, 0], [9003, 9004, 9005]),
    "one of each": ({"layout": "kraft-separate", "brokers": 1, "controllers": 1}, [9000], [0], [9001]),
}


@pytest.mark.parametrize("case", KRAFT)
def test_kraft_layout(case: str) -> None:
    options, brokers, combined, controllers = KRAFT[case]
    spec = spec_of(**options)
    assert [b.port for b in spec.brokers] == brokers
    assert [b.controller_port for b in spec.brokers] == combined
    assert [(c.id, c.port) for c in spec.controllers] == [(101 + n, port) for n, port in enumerate(controllers)]
    assert spec.ports == set(range(9000, 9000 + port_count(LayoutRequest(name="dev", **options))))
    assert [voter.port for voter in spec.voters] == (controllers or combined)
    ids = [spec.cluster_id, *(voter.directory_id for voter in spec.voters)]
    assert len(set(ids)) == len(ids)
    assert all(len(base64.urlsafe_b64decode(f"{each}==")) == 16 and not str(each).startswith("-") for each in ids)
    assert (spec.zookeepers, spec.zookeeper_connect, spec.chroot) == ((), None, "")
    assert spec_of(**options).cluster_id != spec.cluster_id
    data = json.dumps(spec_to_json(spec)).encode()
    assert parse_spec(data, Path("cluster.json")) == spec


def test_a_description_without_the_keys_of_kraft_reads_back() -> None:
    spec = spec_of("single")
    older = {key: value for key, value in spec_to_json(spec).items() if key not in {"controllers", "cluster_id"}}
    older["brokers"] = [{"id": 1, "port": 9000, "rack": None}]
    assert parse_spec(json.dumps(older).encode(), Path("cluster.json")) == spec


def test_pseudo_distributed_with_more_brokers_racks_and_log_dirs() -> None:
    spec = spec_of("pseudo-distributed", brokers=5, rack="a,b", log_dirs=2, chroot="/x/y")
    assert [b.rack for b in spec.brokers] == ["a", "b", "a", "b", "a"]
    assert [str(p) for p in spec.data_paths(spec.brokers[4])] == ["/c/dev/broker-5/data-1", "/c/dev/broker-5/data-2"]
    assert spec.zookeeper_connect == "127.0.0.1:9005/x/y"
    assert spec.broker(5).port == 9004
    with pytest.raises(NotFound, match="no broker 6"):
        spec.broker(6)


def test_the_description_reads_back() -> None:
    spec = spec_of("three-node", rack="auto", settings={"num.io.threads": "4"})
    data = json.dumps(spec_to_json(spec)).encode()
    assert parse_spec(data, Path("cluster.json")) == spec


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 2}', b'{"format": 3}', b"null", b"[" * 100_000,
     b'{"format": 1, "name": "x", "zookeepers": 3}'],
)  # fmt: skip
def test_a_damaged_description(data: bytes) -> None:
    with pytest.raises(InvalidFile, match=r"cluster\.json"):
        parse_spec(data, Path("cluster.json"))


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"layout": "heap"}, "no layout 'heap'"),
    ({"layout": "single", "brokers": 2}, "has 1 broker, not 2"),
    ({"layout": "three-node", "brokers": 5}, "has 3 brokers, not 5"),
    ({"layout": "pseudo-distributed", "brokers": 0}, "--brokers 0"),
    ({"layout": "pseudo-distributed", "brokers": 51}, "--brokers 51"),
    ({"layout": "kraft-single", "brokers": 2}, "has 1 broker, not 2"),
    ({"layout": "kraft-combined", "brokers": 10}, "--brokers 10 is not between 1 and 9"),
    ({"layout": "kraft-combined", "controllers": 3}, "no dedicated controllers"),
    ({"layout": "kraft-separate", "controllers": 2}, "--controllers 2 is not 1, 3 or 5"),
    ({"layout": "kraft-separate", "chroot": "/x"}, "does not use"),
    ({"controllers": 1}, "no dedicated controllers"),
    ({"log_dirs": 0}, "--log-dirs 0"),
    ({"log_dirs": 21}, "--log-dirs 21"),
    ({"name": ""}, "cannot name"),
    ({"heap": "12"}, "--heap"),
    ({"rack": "a,b"}, "2 racks for 1 broker"),
    ({"chroot": "kafka"}, "--chroot"),
]


@pytest.mark.parametrize(("options", "says"), IMPOSSIBLE, ids=lambda v: v if isinstance(v, str) else "")
def test_impossible(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_request(LayoutRequest(**{"name": "dev", "layout": "single", **options}))


@pytest.mark.parametrize("name", ["dev", "a", "A-1_b.c", "0", "x" * 63])
def test_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".dev", "-a", "a/b", "../a", "a b", "ä", "x" * 64, "a\n", "a\x00"])
def test_no_name(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)


@pytest.mark.parametrize(
    ("chroot", "result"), [("/", ""), ("", ""), ("/kafka", "/kafka"), ("/a/b-1/c.d", "/a/b-1/c.d")]
)
def test_chroot(chroot: str, result: str) -> None:
    assert check_chroot(chroot) == result


@pytest.mark.parametrize("chroot", ["a", "//", "/a/", "/a//b", "/.", "/a/..", "/zookeeper", "/a b", "/a,b", "/a\n"])
def test_no_chroot(chroot: str) -> None:
    with pytest.raises(UsageError):
        check_chroot(chroot)


@pytest.mark.parametrize(("heap", "size"), [("512m", 512 << 20), ("1G", 1 << 30), ("131072k", 128 << 20)])
def test_heap(heap: str, size: int) -> None:
    assert heap_bytes(heap) == size


@pytest.mark.parametrize("heap", ["", "m", "512", "127m", "-1g", "1 g", "1t", "0512m", "512m "])
def test_no_heap(heap: str) -> None:
    with pytest.raises(UsageError):
        heap_bytes(heap)


def test_racks() -> None:
    assert racks(None, 2) == (None, None)
    assert racks("auto", 3) == ("r1", "r2", "r3")
    assert racks("x", 3) == ("x", "x", "x")
    for wrong in ("", "a,", "a b", "a,b,c"):
        with pytest.raises(UsageError):
            racks(wrong, 2)


def test_kafka_cannot_have_a_comma_in_a_log_dir() -> None:
    with pytest.raises(UsageError, match="comma"):
        check_directory(Path("/tmp/a,b"))
