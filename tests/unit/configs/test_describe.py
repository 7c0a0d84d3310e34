"""The configs of a topic that is not there: what was probably meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from health_testing import partition, state
from kctl.cluster.config_resources import Resource
from kctl.configs import describe
from kctl.errors import NotFound


@pytest.mark.parametrize(("name", "hint"), [("order", "did you mean orders?"), ("zzz", "kctl topic list")])
def test_an_unknown_topic_tells_what_was_meant(monkeypatch: pytest.MonkeyPatch, name: str, hint: str) -> None:
    missing = NotFound(f"topic {name} does not exist", hint="kctl topic list")
    monkeypatch.setattr(describe, "describe_each", lambda _client, asked, **_: {asked[0]: missing})
    client: Any = SimpleNamespace(metadata=lambda: state([partition("1", "1", topic="orders")]))
    with pytest.raises(NotFound) as caught:
        describe.describe(client, Resource.topic(name))
    assert (caught.value.message, caught.value.hint) == (missing.message, hint)
