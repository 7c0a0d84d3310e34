"""`kctl demo`: what a newcomer sees first goes through to its end, and leaves nothing, also after Ctrl-C."""

from __future__ import annotations

import signal

import pytest

from kctl_testing import Kctl, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.usefixtures("spark_archive")
def test_the_whole_of_it(own_kctl: Kctl) -> None:
    done = own_kctl("demo", timeout=400)
    assert done.code == 0, str(done)
    assert "is the current context" not in done.err  # it never becomes that
    assert "KCTL_CONTEXT" not in done.err  # the demo's own must not be warned of
    parts = ["topic create", "cluster kill", "cluster start", "spark lag", "spark retention"]
    found = [*(done.out.find(f"$ kctl {part}") for part in parts), done.out.find("The demo is finished")]
    assert -1 not in found, done.out
    assert found == sorted(found)
    _nothing_is_left(own_kctl)


def test_kafka_4_without_zookeeper(kraft_kctl: Kctl) -> None:
    done = kraft_kctl("demo", "--layout", "kraft-combined", "--no-spark", timeout=400)
    assert done.code == 0, str(done)
    assert "three nodes, each a broker and a controller" in done.out
    assert "The demo is finished" in done.out
    _nothing_is_left(kraft_kctl)


def test_ctrl_c(own_kctl: Kctl) -> None:
    def begun() -> bool:
        return any(row["state"] == "running" for row in own_kctl.json("cluster", "list"))

    with own_kctl.running("demo") as process:
        eventually(begun, seconds=120, what="the demo's cluster runs")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    _nothing_is_left(own_kctl)


def _nothing_is_left(kctl: Kctl) -> None:
    assert kctl.json("cluster", "list") == []
    assert kctl.json("context", "list") == []
