"""Contradictory listeners: settings with the verdict of KafkaConfig in three releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.doctor.listener_problems import listener_problems
from kctl.doctor.listeners import Listener, parse_listener, shared_ports
from kctl.doctor.releases import parse_releases
from kctl.doctor.rule_facts import EffectiveSettings
from kctl.doctor.rules_files import _roles

DATA = Path(__file__).parents[2] / "data" / "listener_forms.tsv"
RELEASES = ("3.2.3", "3.9.2", "4.4.0")
# Problems that KafkaConfig accepts. They show when the socket is bound, or never.
BEYOND_KAFKA = ("uses it for IPv4 and IPv6", "clients cannot use", ":70000", ":65536")


def _forms(release: str) -> Iterator[tuple[str, dict[str, str]]]:
    column = RELEASES.index(release)
    for line in DATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if cells[column] != "-":
            yield cells[column], dict(cell.split("=", 1) for cell in cells[len(RELEASES) :])


@pytest.mark.parametrize("release", RELEASES)
def test_agrees_with_kafka(release: str) -> None:
    releases = parse_releases(".".join(release.split(".")[:2]))
    count = 0
    for result, settings in _forms(release):
        count += 1
        facts = EffectiveSettings("server.properties", settings, frozenset(settings), releases)
        problems = [*listener_problems(facts), *_roles(facts)]
        beyond = any(text in each for each in problems for text in BEYOND_KAFKA)
        assert beyond or bool(problems) == (result == "refused"), (settings, problems)
    assert count > 400


@pytest.mark.parametrize(
    ("hosts", "clash"),
    [
        # Measured on Linux: two consecutive calls of ServerSocketChannel.bind.
        (("", ""), True), (("", "0.0.0.0"), True), (("", "127.0.0.1"), True), (("", "::"), True), (("", "::1"), True),
        (("0.0.0.0", "::"), True), (("0.0.0.0", "::1"), True), (("0.0.0.0", "127.0.0.1"), True),
        (("127.0.0.1", "::"), True), (("127.0.0.1", "::1"), False), (("10.0.0.1", "2001:db8::1"), False),
        (("10.0.0.1", "10.0.0.2"), True),  # the socket could be bound, but KafkaConfig refuses
        (("localhost", "::1"), True), (("a.example.com", "b.example.com"), True),
        (("10.0.0.1", "::1", "10.0.0.2"), True), (("10.0.0.1", "::1", "k"), True),
    ],
)  # fmt: skip
def test_shared_ports(hosts: tuple[str, ...], clash: bool) -> None:
    listeners = [Listener(f"L{number}", host, 9092) for number, host in enumerate(hosts)]
    for order in (listeners, listeners[::-1]):
        assert bool(shared_ports(order, one_of_each_family=True)) == clash
        assert shared_ports(order, one_of_each_family=False)
    apart = [each._replace(port=9092 + number) for number, each in enumerate(listeners)]
    any_port = [each._replace(port=0) for each in listeners]
    assert shared_ports(apart, one_of_each_family=False) == shared_ports(any_port, one_of_each_family=False) == []


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("a://h:1", ("A", "h", 1)), ("A://:9092", ("A", "", 9092)), ("A://[::1]:9092", ("A", "::1", 9092)),
        ("A://::1:9092", ("A", "::1", 9092)), ("A://[fe80::1%eth0]:9092", ("A", "fe80::1%eth0", 9092)),
        ("A B://h:1", ("A B", "h", 1)), ("A://h", None), ("A://h:", None), ("://h:1", None), ("A:/h:1", None),
        ("A://h:1/", None), ("A://*:1", None), ("A://h:65535", ("A", "h", 65535)), ("A://h:65536", None),
        ("A://h:99999999999", None), ("A://h:1;B://h:2", None), ("A://h:1 B://h:2", None),
    ],
)  # fmt: skip
def test_parse(text: str, listener: tuple[str, str, int] | None) -> None:
    assert parse_listener(text) == listener
