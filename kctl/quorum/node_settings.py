"""The quorum settings with which each node runs, as the node itself reports them (DescribeConfigs, KIP-919)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kctl.cluster.config_resources import BROKER_RESOURCE
from kctl.errors import KctlError
from kctl.protocol.controllers import SERVERS_KEY, VOTERS_KEY

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kctl.base.address import Address
    from kctl.protocol.client import ClusterClient

AUTO_JOIN_KEY = "controller.quorum.auto.join.enable"  # Kafka 4.2 (KIP-1186)
_TIMEOUT_S = 10.0
Settings = dict[str, str]


def read_settings(client: ClusterClient, nodes: Collection[int] | None = None) -> dict[int, Settings | KctlError]:
    """Return the settings of brokers (default: all), or of controllers if the client connects to controllers."""
    from kctl.protocol.client import error_for

    def parse(node: int, answer: Any) -> Settings | KctlError:
        if isinstance(answer, KctlError):
            return answer
        row = next(iter(answer.results), None)
        if row is None or row.error_code:
            code, text = (row.error_code, row.error_message) if row is not None else (-1, "no settings in the response")
            return error_for(code, text, subject=f"node {node}")
        return {config.name: config.value or "" for config in row.configs}

    ids = list(client.metadata(()).brokers) if nodes is None else list(nodes)
    answers = client.send_each({node: _request(node) for node in ids}, timeout_s=_TIMEOUT_S)
    return {node: parse(node, answer) for node, answer in answers.items()}


def _request(node: int) -> Any:
    from kafka.protocol.admin import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(node),
        configuration_keys=[VOTERS_KEY, SERVERS_KEY, AUTO_JOIN_KEY],
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=False, min_version=1)


def read_controller_settings(
    client: ClusterClient, controllers: Mapping[int, Address]
) -> dict[int, Settings | KctlError]:
    """Return the settings of controllers, read with the security settings of `client`."""
    from dataclasses import replace

    from kctl.protocol.client import connect

    if client.target.controllers:
        return read_settings(client, list(controllers))
    target = replace(client.target, bootstrap_servers=tuple(map(str, controllers.values())), controllers=True)
    try:
        with connect(target, timeout_s=_TIMEOUT_S) as own:
            return read_settings(own, list(controllers))
    except KctlError as exc:
        return dict.fromkeys(controllers, exc)
