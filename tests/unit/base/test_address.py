"""Servers and chroots as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.base.address import Address, parse_address, parse_servers, parse_zookeeper
from kctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "host", "port", "normal"),
    [
        ("kafka1:9093", "kafka1", 9093, "kafka1:9093"),
        ("kafka1", "kafka1", 9092, "kafka1:9092"),
        (" kafka1.example.com:1 ", "kafka1.example.com", 1, "kafka1.example.com:1"),
        ("kafka1.example.com.:65535", "kafka1.example.com.", 65535, "kafka1.example.com.:65535"),
        ("127.0.0.1:9092", "127.0.0.1", 9092, "127.0.0.1:9092"),
        ("[::1]:9092", "::1", 9092, "[::1]:9092"),
        ("[::1]", "::1", 9092, "[::1]:9092"),
        ("[fe80::1%eth0]:9092", "fe80::1%eth0", 9092, "[fe80::1%eth0]:9092"),
        ("PLAINTEXT://kafka1:9092", "kafka1", 9092, "kafka1:9092"),
        ("SASL_SSL://[::1]:9093", "::1", 9093, "[::1]:9093"),
        ("kafka_1:9092", "kafka_1", 9092, "kafka_1:9092"),
        ("1kafka:9092", "1kafka", 9092, "1kafka:9092"),
    ],
)
def test_address(text: str, host: str, port: int, normal: str) -> None:
    assert parse_address(text) == Address(host, port)
    assert str(parse_address(text)) == normal


@pytest.mark.parametrize(
    "text",
    [
        "", ":9092", "kafka1:", "kafka1:0", "kafka1:65536", "kafka1:99999", "kafka1:-1", "kafka1:x", "kafka1:9092x",
        "kafka1:９０９２", "a b:9092", "kafka1:9092/dev", "kafka1;id:9092", "-kafka:9092", "kafka-:9092", "a..b:9092",
        "::1:9092", "::1", "[::1:9092", "[::1]9092", "[::1]x:9092", "[kafka1]:9092", "[::g]:9092", "999.1.1.1:9092",
        "1.2.3:9092", "user@kafka1:9092", "kafka1\n:9092", "kafka1\x00:9092", "x" * 64 + ":9092",
        ".".join(["x" * 60] * 5) + ":9092", "kafka1:9092:9093", "http://",
    ],
)  # fmt: skip
def test_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)


@pytest.mark.parametrize(
    "text", ["k1:1;k2:2", "k1:1 k2:2", "k1:1\tk2:2", "k1:1|k2:2", "SSL://k1:1; k2:2", "[::1]:1;k2:2"]
)
def test_servers_with_another_separator(text: str) -> None:
    with pytest.raises(UsageError, match="is not a server") as refused:
        parse_servers(text)
    assert "by commas" in str(refused.value.hint)


def test_servers() -> None:
    assert parse_servers("a:1, b:2,,a:1") == ("a:1", "b:2")
    for text in ("", ",", " "):
        with pytest.raises(UsageError, match="bootstrap servers is empty"):
            parse_servers(text)
    with pytest.raises(UsageError, match="exceed the maximum of 1000"):
        parse_servers(",".join(f"h{n}" for n in range(1001)))


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk1:2181", (("zk1", 2181),), ""),
        ("zk1", (("zk1", 2181),), ""),
        ("zk1:2181/", (("zk1", 2181),), ""),
        ("zk1:2181,zk2:2182/kafka", (("zk1", 2181), ("zk2", 2182)), "/kafka"),
        ("[::1]:2181/a/b/", (("::1", 2181),), "/a/b"),
    ],
)
def test_zookeeper(text: str, servers: tuple[tuple[str, int], ...], chroot: str) -> None:
    found = parse_zookeeper(text)
    assert found.servers == servers
    assert found.chroot == chroot


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("", "names no server", "zk1:2181,zk2:2181/kafka"),
        ("/kafka", "names no server", "zk1:2181,zk2:2181/kafka"),
        (",", "names no server", "zk1:2181,zk2:2181/kafka"),
        ("zk1:2181/kafka,zk2:2181/kafka", "once, after the last server", "write zk1:2181,zk2:2181/kafka"),
        ("zk1:2181/kafka, zk2:2181/kafka", "the chroot must come once", "write zk1:2181,zk2:2181/kafka"),
        ("zk1/kafka,zk2/kafka,zk3/kafka", "the chroot must come once", "write zk1,zk2,zk3/kafka"),
        ("zk1:2181/kafka/,zk2:2181/kafka/", "the chroot must come once", "write zk1:2181,zk2:2181/kafka"),
        ("zk1:2181/kafka,zk2:2181", "the chroot must come once", "write zk1:2181,zk2:2181/kafka"),
        ("zk1:2181/kafka;zk2:2181/kafka", "the chroot must come once", "write zk1:2181,zk2:2181/kafka"),
        ("[::1]:2181/k,[::2]:2181/k", "the chroot must come once", "write [::1]:2181,[::2]:2181/k"),
        ("zk1:2181/a,zk2:2181/b", "several chroots (/a, /b)", "zk1:2181,zk2:2181/CHROOT"),
        ("zk1:2181;zk2:2181", "by commas", "write zk1:2181,zk2:2181"),
        ("zk1:2181; zk2:2181/kafka", "by commas", "write zk1:2181,zk2:2181/kafka"),
        ("zk1:2181 zk2:2181/kafka", "by commas", "write zk1:2181,zk2:2181/kafka"),
        ("zk1 zk2", "by commas", "write zk1,zk2"),
        ("zk1:2181\tzk2:2181", "by commas", "write zk1:2181,zk2:2181"),
        ("zk1:2181|zk2:2181", "by commas", "write zk1:2181,zk2:2181"),
        ("zk://zk1:2181,zk2:2181/kafka", "begins with zk://", "zk1:2181,zk2:2181/kafka"),
        ("zookeeper://zk1/kafka", "begins with zookeeper://", "zk1/kafka"),
        ('"zk1:2181/kafka"', "in quotes", "zk1:2181/kafka"),
        ("'zk1:2181'", "in quotes", "zk1:2181"),
        ("::1:2181", "'::1:2181' is not a server", "[::1]:2181"),
        ("2001:db8::1", "is not a server", "[::1]:2181"),
        ("zk1:", "is not a port", "1 to 65535"),
        ("zk1:x", "is not a port", "1 to 65535"),
        ("zk1:0", "is not a port", "1 to 65535"),
        ("zk1:2181/a//b", "an empty part", "write zk1:2181/a/b"),
        ("zk1:2181/a/../b", "is not a path", "zk1:2181,zk2:2181/kafka"),
        ("zk1/a b", "contains a blank", "zk1:2181,zk2:2181/kafka"),
        ("zk1:2181/ kafka", "contains a blank", "zk1:2181,zk2:2181/kafka"),
        ("zk1/a\x01", "is not a path", "zk1:2181,zk2:2181/kafka"),
    ],
)
def test_zookeeper_refused(text: str, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_zookeeper(text)
    assert what in caught.value.message
    assert hint in str(caught.value.hint)


def test_zookeeper_as_zookeeper_reads_it() -> None:
    """What kctl takes, ZooKeeper's own parser reads in the same way; a slash too many apart, with which it refuses."""
    rows = (Path(__file__).parents[2] / "data" / "zookeeper_forms.tsv").read_text(encoding="utf-8").splitlines()
    taken = 0
    for text, result, servers, chroot in (row.split("\t") for row in rows if not row.startswith("#")):
        try:
            found = parse_zookeeper(text)
        except UsageError:
            continue
        taken += 1
        if result == "ok":
            assert [f"{each.host}|{each.port}" for each in found.servers] == servers.split()
            assert found.chroot == chroot
        else:
            assert text in {"zk1:2181/kafka/", "zk1:2181//kafka"}
    assert taken > 15


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_usage_error(text: str) -> None:
    try:
        address = parse_address(text)
    except UsageError:
        return
    assert parse_address(str(address)) == address
