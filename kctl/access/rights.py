"""What a principal may do, by the ACLs: what is allowed, minus what is denied.

The rules are those of Kafka's authorizers (StandardAuthorizerData, AclAuthorizer): a denial wins over every allowance;
reading, writing, deleting and altering imply describing, altering configs implies describing them; a denial implies
nothing. Super users, and what allow.everyone.if.no.acl.found opens, are settings of brokers that no request tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kctl.access.model import EVERYBODY, IMPLIES, SUPPORTED, WILDCARD, Acl
from kctl.access.words import acl_words, resource_words
from kctl.base.grouping import grouped


@dataclass(frozen=True)
class Right:
    """What is allowed on a resource, or on all that a pattern covers, from a host (* is every host).

    operations: by ACLs that name them. implied_operations: by those. denied_operations: an ACL would allow them, and
    another denies them altogether. exceptions: denials of a part of it, in words.
    """

    resource: str
    resource_type: str
    resource_name: str
    pattern_type: str
    host: str
    operations: list[str]
    implied_operations: list[str]
    denied_operations: list[str]
    exceptions: list[str]


def rights_of(
    principal: str, acls: Iterable[Acl], *, host: str | None = None, resource: tuple[str, str] | None = None
) -> list[Right]:
    """Sorted by resource and host.

    host: only what holds for this address. resource: type and name; only what holds for it, from all patterns that
    cover it.
    """
    mine = [acl for acl in acls if acl.principal in {principal, EVERYBODY}]
    if host is not None:
        mine = [replace(acl, host=host) for acl in mine if acl.host in {host, WILDCARD}]
    if resource is not None:
        mine = [_narrowed(acl, *resource) for acl in mine if _covers(acl, _literal(*resource))]
    denials = sorted(acl for acl in mine if acl.permission_type == "DENY")
    allowed = [acl for acl in mine if acl.permission_type == "ALLOW"]
    by_place = grouped(sorted(allowed), lambda acl: (acl.resource_type, acl.resource_name, acl.pattern_type, acl.host))
    return [_right(group, denials) for group in by_place.values()]


def _literal(resource_type: str, name: str) -> Acl:
    return Acl(resource_type, name, "LITERAL", "", "", "")


def _narrowed(acl: Acl, resource_type: str, name: str) -> Acl:
    return replace(acl, resource_type=resource_type, resource_name=name, pattern_type="LITERAL")


def _right(allowed: Sequence[Acl], denials: Sequence[Acl]) -> Right:
    """allowed: ACLs of one pattern and host."""
    place = allowed[0]
    known = SUPPORTED.get(place.resource_type, ())
    named = {acl.operation for acl in allowed}
    explicit = {*named - {"ALL"}, *(known if "ALL" in named else ())}
    implied = {each for operation in explicit for each in IMPLIES.get(operation, ()) if each in known} - explicit
    denied, exceptions = set(), dict[str, None]()
    for denial in denials:
        hit = {op for op in explicit | implied if denial.operation in {op, "ALL"}}
        if not hit or not _overlaps(denial, place):
            continue
        if _covers(denial, place) and denial.host in {WILDCARD, place.host}:
            denied |= hit
        else:
            exceptions[acl_words(denial)] = None
    order = (*known, *sorted(explicit - set(known)))
    return Right(
        resource=resource_words(place.resource_type, place.resource_name, place.pattern_type),
        resource_type=place.resource_type,
        resource_name=place.resource_name,
        pattern_type=place.pattern_type,
        host=place.host,
        operations=[op for op in order if op in explicit - denied],
        implied_operations=[op for op in order if op in implied - denied],
        denied_operations=[op for op in order if op in denied],
        exceptions=list(exceptions),
    )


def _overlaps(denial: Acl, place: Acl) -> bool:
    hosts = WILDCARD in {denial.host, place.host} or denial.host == place.host
    return hosts and (_covers(denial, place) or _covers(place, denial))


def _covers(pattern: Acl, other: Acl) -> bool:
    """Whether all resources of `other` are resources of `pattern`."""
    if pattern.resource_type != other.resource_type:
        return False
    if pattern.pattern_type == "LITERAL" and pattern.resource_name == WILDCARD:
        return True
    if pattern.pattern_type == "LITERAL":
        return other.pattern_type == "LITERAL" and other.resource_name == pattern.resource_name
    everything = other.pattern_type == "LITERAL" and other.resource_name == WILDCARD
    return not everything and other.resource_name.startswith(pattern.resource_name)
