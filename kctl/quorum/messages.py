"""Requests that kafka-python lacks, defined as in Kafka's message definitions (KIP-853, KIP-1312)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def voter_requests() -> tuple[Any, Any]:
    """Return the requests AddRaftVoter and RemoveRaftVoter. kafka-python finds the responses by their API keys."""
    from kafka.protocol.api_message import ApiMessage

    class AddRaftVoterRequest(ApiMessage, load_json=__package__): ...

    class AddRaftVoterResponse(ApiMessage, load_json=__package__): ...

    class RemoveRaftVoterRequest(ApiMessage, load_json=__package__): ...

    class RemoveRaftVoterResponse(ApiMessage, load_json=__package__): ...

    _ = AddRaftVoterResponse, RemoveRaftVoterResponse  # found by their API keys
    return AddRaftVoterRequest, RemoveRaftVoterRequest


@lru_cache(maxsize=1)
def unregister_controller_request() -> Any:
    """Return the request UnregisterController (Kafka 4.4)."""
    from kafka.protocol.api_message import ApiMessage

    class UnregisterControllerRequest(ApiMessage, load_json=__package__): ...

    class UnregisterControllerResponse(ApiMessage, load_json=__package__): ...

    _ = UnregisterControllerResponse  # found by its API key
    return UnregisterControllerRequest
