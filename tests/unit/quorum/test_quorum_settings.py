"""Static voters in a server.properties, replaced in place."""

from __future__ import annotations

import pytest

from kctl.deploy.config.quorum_settings import has_static_voters, with_bootstrap_servers
from kctl.errors import InvalidFile

SERVERS = "127.0.0.1:9093,127.0.0.1:9094"
AFTER = f"controller.quorum.bootstrap.servers={SERVERS}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("controller.quorum.voters=1@127.0.0.1:9093\n", AFTER),
        ("a=1\n  controller.quorum.voters : 1@127.0.0.1:9093\nb=2\n", f"a=1\n{AFTER}b=2\n"),
        ("controller.quorum.voters=1@127.0.0.1:9093,\\\n  2@127.0.0.1:9094\nb=2", f"{AFTER}b=2\n"),
        (
            "controller.quorum.bootstrap.servers=own:1\ncontroller.quorum.voters=1@127.0.0.1:9093\n",
            "controller.quorum.bootstrap.servers=own:1\n",
        ),
        (
            "# controller.quorum.voters=old\ncontroller.quorum.voters 1@h:1\n",
            f"# controller.quorum.voters=old\n{AFTER}",
        ),
    ],
)
def test_the_voters_become_bootstrap_servers(before: str, after: str) -> None:
    assert has_static_voters(before, source="f")
    assert with_bootstrap_servers(before, SERVERS, source="f") == after
    assert not has_static_voters(after, source="f")


def test_an_escaped_key_is_not_lost_silently() -> None:
    escaped = "controller\\.quorum.voters=1@h:1\n"
    assert has_static_voters(escaped, source="f")
    with pytest.raises(InvalidFile, match=r"cannot find the line of controller\.quorum\.voters"):
        with_bootstrap_servers(escaped, SERVERS, source="f")
