"""The quorum in a server.properties: static voters become bootstrap servers, in place. Other lines stay. Pure."""

from __future__ import annotations

import re

from kctl.base.properties import parse_properties, property_line
from kctl.errors import InvalidFile
from kctl.protocol.controllers import SERVERS_KEY, VOTERS_KEY

_VOTERS_LINE = re.compile(rf"[ \t\f]*{re.escape(VOTERS_KEY)}[ \t\f]*([=: \t\f]|$)")


def has_static_voters(text: str, *, source: str) -> bool:
    """Return True if the file sets controller.quorum.voters. Raises InvalidFile."""
    return bool(parse_properties(text, source=source).get(VOTERS_KEY))


def with_bootstrap_servers(text: str, servers: str, *, source: str) -> str:
    """Return the text with controller.quorum.bootstrap.servers in place of controller.quorum.voters.

    An existing controller.quorum.bootstrap.servers keeps its value. Raises InvalidFile if the line cannot be found.
    """
    existing = parse_properties(text, source=source).get(SERVERS_KEY)
    out: list[str] = []
    continued = False
    for line in text.splitlines():
        if continued or _VOTERS_LINE.match(line):
            if not continued and not existing:
                out.append(property_line(SERVERS_KEY, servers))
            continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        else:
            out.append(line)
    changed = "\n".join(out) + "\n"
    values = parse_properties(changed, source=source)
    if VOTERS_KEY in values or not values.get(SERVERS_KEY):
        raise InvalidFile(f"{source}: cannot find the line of {VOTERS_KEY}", hint=f"replace it by {SERVERS_KEY}")
    return changed
