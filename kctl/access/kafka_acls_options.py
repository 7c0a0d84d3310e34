"""The options of kafka-acls, rewritten as ACL sentences for `kctl acl add` and `kctl acl remove`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kctl.access.acl_syntax import format_principal, parse_acls, parse_operation, parse_principal, quoted_name
from kctl.errors import UsageError

FLAGS = frozenset({"--cluster", "--producer", "--consumer", "--idempotent"})
_RESOURCES = ("--topic", "--group", "--transactional-id")
OPTIONS = FLAGS | {
    *_RESOURCES, "--allow-principal", "--deny-principal", "--allow-host", "--deny-host", "--resource-pattern-type",
    "--operation", "--principal", "--host",
}  # fmt: skip


def sentences(args: Sequence[str]) -> list[str]:
    """Return a sentence for each principal and resource; an empty list if a part is missing or invalid.

    Without --operation, a sentence has the narrowest operation, where kafka-acls would use all operations.
    """
    values, words = _parse(args)
    kind = "deny" if "--deny-principal" in values else "allow"
    principals = values.get(f"--{kind}-principal") or values.get("--principal") or words[:1]
    role = "produce" if "--producer" in values else "consume" if "--consumer" in values else None
    star = "*" if values.get("--resource-pattern-type", [""])[-1].lower() == "prefixed" else ""
    hosts = values.get(f"--{kind}-host") or values.get("--host") or []
    try:
        operations = role or ",".join(
            parse_operation(each).lower().replace("_", "-") for each in values.get("--operation", [])
        )
        rows = [
            f"{kind} {format_principal(parse_principal(principal))} {operations or narrowest} {resource}"
            f"{f' from {quoted_name(host)}' if host else ''}"
            for principal in principals
            for resource, narrowest in _resources(values, star)
            for host in hosts or [""]
        ]
        for row in rows:
            parse_acls(row)
    except UsageError:
        return []
    return rows


def _parse(args: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the values of each option of kafka-acls, and the other words."""
    values: dict[str, list[str]] = {}
    words = []
    rest = iter(args)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in OPTIONS:
            values.setdefault(name, []).append(value if equals or name in FLAGS else next(rest, ""))
        elif not word.startswith("-"):
            words.append(word)
    return values, words


def _resources(values: dict[str, list[str]], star: str) -> Iterator[tuple[str, str]]:
    """Yield each resource as text, and the narrowest operation on it."""
    if "--cluster" in values:
        yield "cluster", "describe"
    for option in _RESOURCES:
        for name in values.get(option, []):
            text = "*" if name == "*" else f"{quoted_name(name)}{star}"
            yield f"{option[2:]} {text}", "describe" if option == "--transactional-id" else "read"
