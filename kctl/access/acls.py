"""ACLs of a cluster: reading, adding, removing. DescribeAcls, CreateAcls, DeleteAcls (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.access.model import (
    ANY,
    MATCH,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    AclFilter,
    name_of,
)
from kctl.errors import KctlError, OperationFailed, OutcomeUnknown
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_REQUEST = 500  # KRaft takes at most 10,000 records of a request; with ZooKeeper they are written one by one

Outcomes = dict[Acl, "KctlError | None"]


def list_acls(client: ClusterClient, wanted: AclFilter | None = None) -> list[Acl]:
    """The ACLs that a filter takes, sorted. Raises NotSupported where the cluster has no authorizer, NotAuthorized."""
    from kafka.protocol.admin import DescribeAclsRequest

    wanted = wanted or AclFilter()
    answer = client.send(
        DescribeAclsRequest(
            resource_type_filter=_code(RESOURCE_TYPES, wanted.resource_type),
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=MATCH if wanted.covering else _code(PATTERN_TYPES, wanted.pattern_type),
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=_code(OPERATIONS, wanted.operation),
            permission_type=_code(PERMISSIONS, wanted.permission_type),
            min_version=1,
        )
    )
    if answer.error_code:
        raise _error(answer.error_code, answer.error_message, "ACLs", "Describe")
    return sorted(
        Acl(
            resource_type=name_of(RESOURCE_TYPES, resource.resource_type),
            resource_name=resource.resource_name,
            pattern_type=name_of(PATTERN_TYPES, resource.pattern_type),
            principal=acl.principal,
            permission_type=name_of(PERMISSIONS, acl.permission_type),
            operation=name_of(OPERATIONS, acl.operation),
            host=acl.host,
        )
        for resource in answer.resources
        for acl in resource.acls
    )


def add_acls(client: ClusterClient, acls: Sequence[Acl]) -> Outcomes:
    """ACL → its error, None when it was taken."""
    from kafka.protocol.admin import CreateAclsRequest

    def request(chunk: Sequence[Acl]) -> Any:
        creations = [
            CreateAclsRequest.AclCreation(
                resource_type=RESOURCE_TYPES[acl.resource_type],
                resource_name=acl.resource_name,
                resource_pattern_type=PATTERN_TYPES[acl.pattern_type],
                principal=acl.principal,
                host=acl.host,
                operation=OPERATIONS[acl.operation],
                permission_type=PERMISSIONS[acl.permission_type],
            )
            for acl in chunk
        ]
        return CreateAclsRequest(creations=creations, min_version=1)

    return _in_chunks(client, acls, request, lambda answer: answer.results)


def remove_acls(client: ClusterClient, acls: Sequence[Acl]) -> Outcomes:
    """ACL → its error, None when it is gone, or was not there."""
    from kafka.protocol.admin import DeleteAclsRequest

    def request(chunk: Sequence[Acl]) -> Any:
        filters = [
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=RESOURCE_TYPES[acl.resource_type],
                resource_name_filter=acl.resource_name,
                pattern_type_filter=PATTERN_TYPES[acl.pattern_type],
                principal_filter=acl.principal,
                host_filter=acl.host,
                operation=OPERATIONS[acl.operation],
                permission_type=PERMISSIONS[acl.permission_type],
            )
            for acl in chunk
        ]
        return DeleteAclsRequest(filters=filters, min_version=1)

    def results(answer: Any) -> list[Any]:
        return [next((m for m in row.matching_acls if m.error_code), row) for row in answer.filter_results]

    return _in_chunks(client, acls, request, results)


def _in_chunks(
    client: ClusterClient,
    acls: Sequence[Acl],
    request: Callable[[Sequence[Acl]], Any],
    results: Callable[[Any], Sequence[Any]],
) -> Outcomes:
    """Answers come in the order of what was asked. After a request without an answer the rest is not sent."""
    outcomes: Outcomes = {}
    for start in range(0, len(acls), _PER_REQUEST):
        chunk = acls[start : start + _PER_REQUEST]
        try:
            rows = results(client.send_to_controller(request(chunk)))
        except KctlError as exc:
            if start == 0 and not isinstance(exc, OutcomeUnknown):
                raise
            outcomes.update(dict.fromkeys(chunk, exc))
            rest = OperationFailed(f"not asked for, because an earlier request failed: {exc.message}", hint=exc.hint)
            outcomes.update(dict.fromkeys(acls[start + _PER_REQUEST :], rest))
            return outcomes
        for at, acl in enumerate(chunk):
            if at >= len(rows):
                outcomes[acl] = OperationFailed("the broker's answer does not name it", hint="look at kctl acl list")
            elif rows[at].error_code:
                outcomes[acl] = _error(rows[at].error_code, rows[at].error_message, "ACL", "Alter")
            else:
                outcomes[acl] = None
    return outcomes


def unknown_parts(acls: Sequence[Acl]) -> Mapping[Acl, str]:
    """ACLs that a later Kafka has and that cannot be named in a request, with the reason."""
    reasons = {}
    for acl in acls:
        for part in (acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type):
            if part.startswith("UNKNOWN_"):
                reasons[acl] = f"this kctl does not know {part} of a later Kafka"
    return reasons


def _code(codes: dict[str, int], name: str | None) -> int:
    return ANY if name is None else codes[name]


def _error(code: int, message: str | None, subject: str, operation: str) -> KctlError:
    from kctl.protocol.client import error_for

    hints: dict[int, str] = {
        ErrorCode.SECURITY_DISABLED: "ACLs need authorizer.class.name in the brokers' settings",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: f"it needs an ACL for {operation} on the cluster",
    }
    return error_for(code, None if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else message, subject=subject,
                     hint=hints.get(code))  # fmt: skip
