"""Whether lists may lack something that the user must not see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kctl.cluster.rights import may_describe_all_topics
from kctl.cluster.topic_names import fault_of
from kctl.errors import ConnectionTimedOut, KctlError, NotAuthorized


@pytest.mark.parametrize(
    ("error", "answer"), [(None, True), (NotAuthorized("no"), False), (ConnectionTimedOut("no answer"), None)]
)
def test_all_topics(error: KctlError | None, answer: bool | None) -> None:
    asked: list[str] = []

    def metadata(topics: list[str]) -> object:
        asked.extend(topics)
        if error is not None:
            raise error
        return None

    client: Any = SimpleNamespace(metadata=metadata)
    assert may_describe_all_topics(client) is answer
    (name,) = asked
    assert fault_of(name) is not None, "no topic of this name can be there, or come into being by asking"
