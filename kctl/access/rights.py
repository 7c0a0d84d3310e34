"""The operations that ACLs allow a principal, minus those that they deny.

The rules are those of Kafka's authorizers (StandardAuthorizerData, AclAuthorizer): a denial overrides every allowance.
Read, write, delete and alter imply describe; alter-configs implies describe-configs; a denial implies nothing. Super
users and allow.everyone.if.no.acl.found are broker settings that brokers do not disclose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kctl.access.acl_syntax import format_acl, format_resource
from kctl.access.model import EVERYONE, IMPLIES, SUPPORTED, WILDCARD, Acl
from kctl.base.grouping import grouped


@dataclass(frozen=True)
class Right:
    """The allowed operations on a resource or pattern from a host (* is any host).

    operations: allowed by name. implied_operations: implied by those. denied_operations: allowed by one ACL but
    completely denied by another. exceptions: partial denials, as ACL sentences.
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
    """Return the rights, sorted by resource and host.

    host: only rights from this address. resource: type and name; only rights on this resource, from all matching
    patterns.
    """
    acls_of_principal = [acl for acl in acls if acl.principal in {principal, EVERYONE}]
    if host is not None:
        acls_of_principal = [replace(acl, host=host) for acl in acls_of_principal if acl.host in {host, WILDCARD}]
    if resource is not None:
        acls_of_principal = [
            _narrowed(acl, *resource) for acl in acls_of_principal if _covers(acl, _literal(*resource))
        ]
    denials = sorted(acl for acl in acls_of_principal if acl.permission_type == "DENY")
    allowed = [acl for acl in acls_of_principal if acl.permission_type == "ALLOW"]
    by_target = grouped(sorted(allowed), lambda acl: (acl.resource_type, acl.resource_name, acl.pattern_type, acl.host))
    return [_right(group, denials) for group in by_target.values()]


def _literal(resource_type: str, name: str) -> Acl:
    return Acl(resource_type, name, "LITERAL", "", "", "")


def _narrowed(acl: Acl, resource_type: str, name: str) -> Acl:
    return replace(acl, resource_type=resource_type, resource_name=name, pattern_type="LITERAL")


def _right(allowed: Sequence[Acl], denials: Sequence[Acl]) -> Right:
    """Return the right of one pattern and host. allowed: its ACLs."""
    target = allowed[0]
    supported = SUPPORTED.get(target.resource_type, ())
    named = {acl.operation for acl in allowed}
    explicit = {*named - {"ALL"}, *(supported if "ALL" in named else ())}
    implied = {each for operation in explicit for each in IMPLIES.get(operation, ()) if each in supported} - explicit
    denied, exceptions = set(), dict[str, None]()
    for denial in denials:
        affected = {op for op in explicit | implied if denial.operation in {op, "ALL"}}
        if not affected or not _overlaps(denial, target):
            continue
        if _covers(denial, target) and denial.host in {WILDCARD, target.host}:
            denied |= affected
        else:
            exceptions[format_acl(denial)] = None
    order = (*supported, *sorted(explicit - set(supported)))
    return Right(
        resource=format_resource(target.resource_type, target.resource_name, target.pattern_type),
        resource_type=target.resource_type,
        resource_name=target.resource_name,
        pattern_type=target.pattern_type,
        host=target.host,
        operations=[op for op in order if op in explicit - denied],
        implied_operations=[op for op in order if op in implied - denied],
        denied_operations=[op for op in order if op in denied],
        exceptions=list(exceptions),
    )


def _overlaps(denial: Acl, target: Acl) -> bool:
    hosts = WILDCARD in {denial.host, target.host} or denial.host == target.host
    return hosts and (_covers(denial, target) or _covers(target, denial))


def _covers(pattern: Acl, other: Acl) -> bool:
    """Return True if `pattern` covers every resource of `other`."""
    if pattern.resource_type != other.resource_type:
        return False
    if _is_wildcard(pattern):
        return True
    if pattern.pattern_type == "LITERAL":
        return other.pattern_type == "LITERAL" and other.resource_name == pattern.resource_name
    return not _is_wildcard(other) and other.resource_name.startswith(pattern.resource_name)


def _is_wildcard(acl: Acl) -> bool:
    return acl.pattern_type == "LITERAL" and acl.resource_name == WILDCARD
