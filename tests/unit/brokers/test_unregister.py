"""Which broker can be unregistered."""

from __future__ import annotations

import pytest

from health_testing import partition, state
from kctl.brokers.unregister import Unregistration, check_unregister
from kctl.errors import NotFound, Refused
from kctl.model import Broker

FENCED = {4: Broker(4, "host4", 9092, None)}


def test_a_broker_that_is_down_and_empty() -> None:
    cluster = state([partition("123", "123")], alive="123")
    assert check_unregister(cluster, FENCED, 4) == Unregistration(4, "host4", 9092)


@pytest.mark.parametrize(
    ("replicas", "broker", "error", "message"),
    [
        ("123", 2, Refused, "broker 2 is up"),
        ("124", 4, Refused, "hosts replicas of 1 partition, e.g. t-0"),
        ("123", 7, NotFound, "broker 7 is not registered"),
    ],
)
def test_what_is_refused(replicas: str, broker: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_unregister(state([partition(replicas, "12")], alive="123"), FENCED, broker)
