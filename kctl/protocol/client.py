"""The only module that creates broker clients: kctl's own and kafka-python's.

`connect` runs the preflight and returns a ClusterClient, which sends kafka-python's request classes over kctl's own
connections (kctl.protocol.connection). kafka-python's clients (producer, consumer) are created on demand, with the
server that the preflight reached.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.errors import (
    ConnectionFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NotFound,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    Reason,
    UsageError,
)
from kctl.model import Broker, ClusterState
from kctl.protocol import wire
from kctl.protocol.brokers import Brokers
from kctl.protocol.codes import ErrorCode
from kctl.protocol.connection import Connection, PeerClosed
from kctl.protocol.dialer import Dialer
from kctl.protocol.error_meanings import error_for, error_from, error_name, has_error
from kctl.protocol.metadata_messages import MetadataRequest, metadata_is_flexible
from kctl.protocol.request_version import negotiate, version_needed
from kctl.protocol.silence import Silence

if TYPE_CHECKING:
    from kafka import KafkaConsumer, KafkaProducer

    from kctl.protocol.target import Target

__all__ = ["ClusterClient", "connect", "consumer_for", "error_for", "error_from", "error_name", "producer_for"]

# A dead controller is replaced when its session expires (zookeeper.session.timeout.ms, 18 s by default).
_ELECTION_WAIT_S = 10.0
_ELECTION_POLL_S = 0.25


def connect(target: Target, *, timeout_s: float = 30.0) -> ClusterClient:
    """Return a client of `target`. timeout_s: the limit of each later call; connecting takes at most 5 s.

    Raises subclasses of ConnectionFailed, NotSupported, and UsageError if the target has no servers or unusable
    security settings.
    """
    return ClusterClient(target, timeout_s=timeout_s)


class ClusterClient:
    """A client of one cluster. Not thread-safe; `with` closes it.

    warnings: bootstrap servers that did not respond while another one did.
    """

    def __init__(self, target: Target, *, timeout_s: float = 30.0) -> None:
        if not target.bootstrap_servers:
            raise UsageError(
                f"{target.name} has no bootstrap server",
                hint="set --bootstrap-server HOST:PORT, or --context to a context that has one",
            )
        self.timeout_s = timeout_s
        self._dialer = Dialer(target.security, controllers=target.controllers)
        self._brokers = Brokers(target.bootstrap_servers, self._dialer, timeout_s)
        state = self._brokers.state
        advertised = tuple(str(Address(broker.host, broker.port)) for broker in state.brokers.values())
        self.target = replace(target, cluster_id=state.cluster_id, advertised=advertised)
        self.warnings = tuple(error.message for error in self._brokers.failures.values())
        self._silence = Silence()
        self._outer_deadline: Deadline | None = None

    def __enter__(self) -> ClusterClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Does nothing if they are already closed."""
        self._brokers.close()

    # --- state ----------------------------------------------------------------------------------------------------

    def metadata(
        self,
        topics: Collection[str] | None = None,
        *,
        timeout_s: float | None = None,
        keep_errors: bool = False,
        operations: bool = False,
    ) -> ClusterState:
        """Return brokers, controller and topics. topics: None for all, empty for none; unknown ones are absent.

        Never creates a topic. 100,000 partitions take about half a CPU second. operations: also request the operations
        that the user may perform on each topic. Raises NotAuthorized for a topic that may not be described (with
        keep_errors it is in the state's `failed`), subclasses of ConnectionFailed, NotSupported for `operations` before
        Kafka 2.3. A client of controllers has only the controllers, as brokers; others raise NotSupported.
        """
        if self.target.controllers:
            return self._controllers(topics, timeout_s)
        request = MetadataRequest(topics, operations=operations, keep_errors=keep_errors)
        deadline = self._deadline(timeout_s)
        for attempt in (1, 2):
            started = time.monotonic()
            try:
                state = self._metadata(request, deadline)
                break
            except PeerClosed:
                if attempt == 2:
                    raise
            except ConnectionTimedOut:
                self._silence.add_lost_time(started)
                raise
        self._brokers.state = ClusterState(state.cluster_id, state.controller_id, state.brokers, {})
        return state

    def _controllers(self, topics: Collection[str] | None, timeout_s: float | None) -> ClusterState:
        if topics is None or topics:
            raise NotSupported("controllers do not report topics", hint="use --bootstrap-server")
        return self._brokers.refresh(self._deadline(timeout_s))

    def _metadata(self, request: MetadataRequest, deadline: Deadline) -> ClusterState:
        connection = self._brokers.any_connection(deadline)
        version = negotiate(request, None, connection)
        connection.step = "the Metadata request"
        flexible = metadata_is_flexible(version)
        reader = connection.exchange(request.API_KEY, version, request.body(version), deadline, flexible=flexible)
        try:
            return request.read(reader, version)
        except wire.WireError as exc:
            connection.close()
            raise ConnectionFailed(f"{connection.address} sent a malformed Metadata response ({exc})") from None

    def metadata_of_each(
        self, nodes: Iterable[int], topics: Collection[str] | None = None, *, timeout_s: float | None = None
    ) -> dict[int, ClusterState | KctlError]:
        """Return what each broker reports, which may differ while metadata spreads; `topics` as in `metadata`.

        Topics that the user may not describe are in `failed` of the states.
        """
        request = MetadataRequest(topics, keep_errors=True)
        return self.send_each(dict.fromkeys(nodes, request), timeout_s=timeout_s)

    @property
    def reached(self) -> str:
        """Return "host:port" of the bootstrap server that responded."""
        return str(self._brokers.reached_address)

    def api_version(self, api_key: int) -> int | None:
        """Return the highest version of an API on the connected broker; None if the broker lacks the API."""
        versions = self._brokers.api_versions.get(api_key)
        return versions[1] if versions else None

    def require(self, api_key: int, version: int, what: str) -> None:
        """Raise NotSupported if the connected broker lacks this version of an API.

        what: the feature that needs it, for the message, which names the required Kafka release.
        """
        highest = self.api_version(api_key)
        if highest is None or highest < version:
            release = version_needed(api_key, version) or "a later release"
            raise NotSupported(
                f"{self.reached} is too old for {what}",
                hint=f"upgrade to Kafka {release} or later",
                reason=Reason.VERSION_UNSUPPORTED,
            )

    # --- requests -------------------------------------------------------------------------------------------------

    def send(
        self,
        request: Any,
        *,
        node_id: int | None = None,
        timeout_s: float | None = None,
        changes: bool | None = None,
    ) -> Any:
        """Send a kafka-python request to a broker (None: any), and return the response with its error codes unchecked.

        changes: whether the request changes something (default: by API). If there is no response, such a request
        raises OutcomeUnknown; others raise ConnectionTimedOut or another ConnectionFailed. Raises NotSupported with
        the required version, NotFound for an unknown broker id.
        """
        answer = self._ask({node_id: request}, timeout_s, changes)[node_id]
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def send_each(
        self, requests: Mapping[int, Any], *, timeout_s: float | None = None, changes: bool | None = None
    ) -> dict[int, Any]:
        """Send several brokers a request each, in parallel, and return node id → response or KctlError."""
        each: dict[int | None, Any] = dict(requests.items())
        answers = self._ask(each, timeout_s, changes)
        return {node: answer for node, answer in answers.items() if node is not None}

    def dial(self, nodes: Iterable[int], *, timeout_s: float | None = None) -> dict[int, Connection | KctlError]:
        """Open a connection to each broker: node id → connection or KctlError. The caller closes it."""
        return self._brokers.dial(nodes, self._deadline(timeout_s))

    def dial_known(self, brokers: Collection[Broker], *, timeout_s: float) -> dict[int, Connection | KctlError]:
        """Open connections like `dial`, but to addresses that the caller has. Unlike the other methods, thread-safe."""
        return self._brokers.dial_known({broker.id: broker for broker in brokers}, Deadline(timeout_s))

    @contextmanager
    def asking_silent_brokers_once(self) -> Iterator[None]:
        """Skip a broker for the rest of the block once a request to it times out; its responses are that error.

        For many requests in a row. Elsewhere, kctl sends requests to such a broker again after a while
        (kctl.protocol.silence).
        """
        self._silence.skip_permanently = True
        try:
            yield
        finally:
            self._silence.skip_permanently = False
            self._silence.forget()

    @contextmanager
    def ending_by(self, deadline: Deadline) -> Iterator[None]:
        """Limit each call in the block to this deadline, in addition to its own limit."""
        self._outer_deadline = deadline
        try:
            yield
        finally:
            self._outer_deadline = None

    def _deadline(self, timeout_s: float | None) -> Deadline:
        seconds = self._silence.limit_s(timeout_s or self.timeout_s)
        return Deadline(seconds) if self._outer_deadline is None else self._outer_deadline.at_most(seconds)

    def _ask(
        self, requests: Mapping[int | None, Any], timeout_s: float | None, changes: bool | None
    ) -> dict[int | None, Any]:
        silence = self._silence
        skipped: dict[int | None, Any] = {
            node: error for node in requests if node is not None and (error := silence.of(node)) is not None
        }
        rest = {node: request for node, request in requests.items() if node not in skipped}
        if not rest:
            return skipped
        started = time.monotonic()
        answers = self._brokers.ask(rest, self._deadline(timeout_s), changes=changes)
        late = {node: each for node, each in answers.items() if isinstance(each, (ConnectionTimedOut, OutcomeUnknown))}
        for node, late_error in late.items():
            if node is not None and isinstance(late_error, ConnectionTimedOut):
                silence.skip(node, late_error, started)
        if late:
            silence.add_lost_time(started)
        return {**answers, **skipped}

    def send_to_quorum(self, request: Any, *, timeout_s: float | None = None) -> Any:
        """Send a request that only the active KRaft controller handles. Any broker forwards it (KIP-590).

        Raises the errors of `send_to_controller`.
        """
        if self.target.controllers:
            return self.send_to_controller(request, timeout_s=timeout_s)
        return self.send(request, timeout_s=timeout_s)

    def send_to_controller(self, request: Any, *, timeout_s: float | None = None) -> Any:
        """Send a request to the current controller. Retries after NOT_CONTROLLER, since nothing was changed.

        Raises the errors of `send`, and OperationFailed if there is no controller.
        """
        deadline = self._deadline(timeout_s)
        retry_deadline = deadline.at_most(_ELECTION_WAIT_S)
        while True:
            problem: KctlError
            controller = self._brokers.refresh(deadline).controller_id
            if controller is None:
                problem = OperationFailed(
                    "the cluster has no controller",
                    hint="check that enough brokers (KRaft: controllers) and ZooKeeper servers are up",
                )
            else:
                try:
                    answer = self.send(request, node_id=controller, timeout_s=deadline.left_s)
                except (ConnectionRefused, PeerClosed, NotFound) as exc:  # not sent, or it only reads
                    if not self._brokers.advertised_can_be_reached:
                        raise
                    problem = exc
                except ConnectionTimedOut as exc:
                    if not getattr(request, "validate_only", False):
                        raise
                    message = f"{exc.message}; the request only validates, and nothing was changed"
                    raise exc.reworded(message) from None
                else:
                    if not any(has_error(answer, code) for code in self._not_the_controller):
                        return answer
                    problem = error_for(ErrorCode.NOT_CONTROLLER, None, subject=f"broker {controller}")
            if retry_deadline.expired:
                raise problem
            time.sleep(_ELECTION_POLL_S)

    @property
    def _not_the_controller(self) -> tuple[ErrorCode, ...]:
        """Return the errors of a node that is not the controller: KRaft voters report that they do not lead."""
        kraft = (ErrorCode.NOT_LEADER_OR_FOLLOWER,) if self.target.controllers else ()
        return (ErrorCode.NOT_CONTROLLER, *kraft)

    # --- kafka-python's clients -------------------------------------------------------------------------------------

    def producer(self, **settings: Any) -> KafkaProducer:
        """Return a kafka-python producer (default: idempotent, acks=all). The caller closes it."""
        from kctl.base.logs import quiet_kafka

        quiet_kafka()
        from kafka import KafkaProducer

        if not {"acks", "enable_idempotence"} & settings.keys():
            settings = {"acks": "all", "enable_idempotence": True, **settings}
        with _kafka_errors(self.target.name):
            return KafkaProducer(**{**self._settings(), **settings})

    def consumer(self, *topics: str, **settings: Any) -> KafkaConsumer:
        """Return a kafka-python consumer. The caller closes it."""
        from kctl.base.logs import quiet_kafka

        quiet_kafka()
        from kafka import KafkaConsumer

        with _kafka_errors(self.target.name):
            return KafkaConsumer(*topics, **{**self._settings(), **settings})

    def _settings(self) -> dict[str, Any]:
        """Return the common settings of kafka-python's clients, after a check of the advertised addresses."""
        self._check_advertised()
        security = self.target.security
        settings: dict[str, Any] = {
            "bootstrap_servers": [str(self._brokers.reached_address)],
            "client_id": wire.CLIENT_ID,
            "security_protocol": security.protocol,
            "bootstrap_timeout_ms": round(min(self.timeout_s, 10.0) * 1000),
            # By default, back-off grows to 30 s, and a producer stalls that long after a leader fails.
            "reconnect_backoff_max_ms": 1000,
        }
        if self._dialer.ssl_context is not None:
            settings["ssl_context"] = self._dialer.ssl_context
            settings["ssl_check_hostname"] = security.ssl_check_hostname
        if security.sasl:
            settings["sasl_mechanism"] = security.sasl_mechanism
            settings["sasl_plain_username"] = security.sasl_username
            settings["sasl_plain_password"] = security.sasl_password
        return settings

    def _check_advertised(self) -> None:
        """Raise an error if no broker of a sample is reachable at its advertised address: clients would hang."""
        deadline = Deadline(self.timeout_s)
        self._brokers.any_connection(deadline)
        if self._brokers.advertised_can_be_reached:
            return
        brokers = list(self._brokers.state.brokers.values())
        outcomes = self._brokers.connections([b.id for b in brokers[:3]], deadline)
        errors = [outcome for outcome in outcomes.values() if isinstance(outcome, KctlError)]
        if errors and len(errors) == len(outcomes):
            raise errors[0]


def producer_for(target: Target, *, timeout_s: float = 30.0, **settings: Any) -> KafkaProducer:
    """Return a producer, after the preflight. The caller closes it."""
    with connect(target, timeout_s=timeout_s) as client:
        return client.producer(**settings)


def consumer_for(target: Target, *topics: str, timeout_s: float = 30.0, **settings: Any) -> KafkaConsumer:
    """Return a consumer, after the preflight. The caller closes it."""
    with connect(target, timeout_s=timeout_s) as client:
        return client.consumer(*topics, **settings)


@contextmanager
def _kafka_errors(subject: str) -> Iterator[None]:
    from kafka.errors import KafkaError

    try:
        yield
    except KafkaError as exc:
        raise error_from(exc, subject=subject) from None
