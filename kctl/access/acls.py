"""Read, add and remove ACLs: DescribeAcls, CreateAcls, DeleteAcls (KIP-140, KIP-290)."""

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

_PER_REQUEST = 500  # KRaft accepts at most 10,000 records per request; with ZooKeeper they are written one by one

AclErrors = dict[Acl, "KctlError | None"]


def list_acls(client: ClusterClient, acl_filter: AclFilter | None = None) -> list[Acl]:
    """Return the ACLs that match a filter, sorted. Raises NotSupported without an authorizer, NotAuthorized."""
    from kafka.protocol.admin import DescribeAclsRequest

    acl_filter = acl_filter or AclFilter()
    response = client.send(
        DescribeAclsRequest(
            resource_type_filter=_code(RESOURCE_TYPES, acl_filter.resource_type),
            resource_name_filter=acl_filter.resource_name,
            pattern_type_filter=MATCH if acl_filter.covering else _code(PATTERN_TYPES, acl_filter.pattern_type),
            principal_filter=acl_filter.principal,
            host_filter=acl_filter.host,
            operation=_code(OPERATIONS, acl_filter.operation),
            permission_type=_code(PERMISSIONS, acl_filter.permission_type),
            min_version=1,
        )
    )
    if response.error_code:
        raise _error(response.error_code, response.error_message, "ACLs", "Describe")
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
        for resource in response.resources
        for acl in resource.acls
    )


def add_acls(client: ClusterClient, acls: Sequence[Acl]) -> AclErrors:
    """Add ACLs. Return the error of each ACL; None: added."""
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

    return _in_chunks(client, acls, request, lambda response: response.results)


def remove_acls(client: ClusterClient, acls: Sequence[Acl]) -> AclErrors:
    """Remove ACLs. Return the error of each ACL; None: removed, or it did not exist."""
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

    def results(response: Any) -> list[Any]:
        return [next((m for m in row.matching_acls if m.error_code), row) for row in response.filter_results]

    return _in_chunks(client, acls, request, results)


def _in_chunks(
    client: ClusterClient,
    acls: Sequence[Acl],
    request: Callable[[Sequence[Acl]], Any],
    results: Callable[[Any], Sequence[Any]],
) -> AclErrors:
    """Send the requests. Responses are in request order. After a request without a response, the rest is not sent."""
    outcomes: AclErrors = {}
    for start in range(0, len(acls), _PER_REQUEST):
        chunk = acls[start : start + _PER_REQUEST]
        try:
            rows = results(client.send_to_controller(request(chunk)))
        except KctlError as exc:
            if start == 0 and not isinstance(exc, OutcomeUnknown):
                raise
            outcomes.update(dict.fromkeys(chunk, exc))
            rest = OperationFailed(f"not sent because an earlier request failed: {exc.message}", hint=exc.hint)
            outcomes.update(dict.fromkeys(acls[start + _PER_REQUEST :], rest))
            return outcomes
        for index, acl in enumerate(chunk):
            if index >= len(rows):
                outcomes[acl] = OperationFailed(
                    "the broker's response does not contain the ACL", hint="check it with `kctl acl list`"
                )
            elif rows[index].error_code:
                outcomes[acl] = _error(rows[index].error_code, rows[index].error_message, "ACL", "Alter")
            else:
                outcomes[acl] = None
    return outcomes


def unknown_parts(acls: Sequence[Acl]) -> Mapping[Acl, str]:
    """Return the ACLs that this kctl cannot name in a request because a part is from a later Kafka, with the reason."""
    reasons = {}
    for acl in acls:
        for part in (acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type):
            if part.startswith("UNKNOWN_"):
                reasons[acl] = f"{part} is from a later Kafka release that this kctl does not support"
    return reasons


def _code(codes: dict[str, int], name: str | None) -> int:
    return ANY if name is None else codes[name]


def _error(code: int, message: str | None, subject: str, operation: str) -> KctlError:
    from kctl.protocol.client import error_for

    hints: dict[int, str] = {
        ErrorCode.SECURITY_DISABLED: "set authorizer.class.name on the brokers to enable ACLs",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: f"this requires {operation} on the cluster",
    }
    return error_for(code, None if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else message, subject=subject,
                     hint=hints.get(code))  # fmt: skip
