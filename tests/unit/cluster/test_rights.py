"""Whether lists may lack something that the user must not see."""

from __future__ import annotations

import pytest

from fake_cluster import FakeCluster
from kctl.cluster.rights import may_describe_all_topics
from kctl.cluster.topic_names import fault_of
from kctl.errors import ConnectionTimedOut, KctlError, NotAuthorized


@pytest.mark.parametrize(
    ("error", "answer"), [(None, True), (NotAuthorized("no"), False), (ConnectionTimedOut("no answer"), None)]
)
def test_all_topics(error: KctlError | None, answer: bool | None) -> None:
    fake = FakeCluster()
    fake.script("Metadata", error)
    assert may_describe_all_topics(fake.client) is answer
    (name,) = fake.requests[0].request
    assert fault_of(name) is not None, "no topic of this name can be there, or come into being by asking"
