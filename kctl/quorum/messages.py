"""Requests that change the voters (KIP-853), defined as in Kafka's message definitions. kafka-python lacks them."""

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
