"""The broker that the tests of this folder use is what they take it for."""

from __future__ import annotations

from kctl_testing import Kctl


def test_a_broker_of_4_x_without_zookeeper(own_kctl: Kctl, kraft: str) -> None:
    own_kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    found = own_kctl.json("context", "test", "kraft")
    assert (found["healthy"], found["brokers"], found["controller_id"]) == (True, [1], 1)
    assert [server["role"] for server in found["servers"]] == ["bootstrap"]
    own_kctl.ok("topic", "create", "kraft-orders", "--partitions", "2")
    assert own_kctl.json("topic", "describe", "kraft-orders")[0]["topic"] == "kraft-orders"
    own_kctl.ok("topic", "delete", "kraft-orders", "--yes")
