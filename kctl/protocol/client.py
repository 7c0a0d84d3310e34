"""The only place that creates clients of brokers: connections and kafka-python's clients.

`connect` runs the preflight and gives a ClusterClient, which speaks to brokers over connections of its own
(kctl.protocol.connection) with kafka-python's request and response classes. kafka-python's own clients (admin,
producer, consumer) are made only when they are asked for, with the server that the preflight reached.
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
    UsageError,
)
from kctl.model import Broker, ClusterState
from kctl.protocol import wire
from kctl.protocol.brokers import Brokers, negotiate, version_needed
from kctl.protocol.codes import ErrorCode
from kctl.protocol.connection import Connection, Dialer, PeerClosed
from kctl.protocol.error_meanings import error_for, error_name
from kctl.protocol.metadata_messages import MetadataRequest, metadata_is_flexible
from kctl.protocol.silence import Silence

if TYPE_CHECKING:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    from kctl.protocol.target import Target

__all__ = ["ClusterClient", "connect", "consumer_for", "error_for", "error_from", "error_name", "producer_for"]

# A dead controller is replaced when its session ends (zookeeper.session.timeout.ms, 18 s by default).
_ELECTION_WAIT_S = 10.0
_ELECTION_POLL_S = 0.25


def connect(target: Target, *, timeout_s: float = 30.0) -> ClusterClient:
    """A client of `target`. timeout_s: the limit of each later call; connecting itself takes at most 5 s.

    Raises ConnectionFailed's subclasses, NotSupported, and UsageError when the target has no servers or its
    security settings cannot be used.
    """
    return ClusterClient(target, timeout_s=timeout_s)


class ClusterClient:
    """Talks to one cluster. For one thread at a time; `with` closes it.

    warnings: bootstrap servers that did not answer while another did.
    """

    def __init__(self, target: Target, *, timeout_s: float = 30.0) -> None:
        if not target.bootstrap_servers:
            raise UsageError(
                f"{target.name} has no bootstrap server",
                hint="give --bootstrap-server HOST:PORT, or --context NAME of a context that has one",
            )
        self.timeout_s = timeout_s
        self._dialer = Dialer(target.security)
        self._brokers = Brokers(target.bootstrap_servers, self._dialer, timeout_s)
        state = self._brokers.state
        advertised = tuple(str(Address(broker.host, broker.port)) for broker in state.brokers.values())
        self.target = replace(target, cluster_id=state.cluster_id, advertised=advertised)
        self.warnings = tuple(error.message for error in self._brokers.failures.values())
        self._silence = Silence()
        self._last: Deadline | None = None

    def __enter__(self) -> ClusterClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; harmless when it is closed."""
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

        Never creates a topic. 100,000 partitions take about half a CPU second. operations: also ask for the operations
        that the user may perform on each topic.
        Raises NotAuthorized for a topic that may not be described (with keep_errors it is in the state's `failed`),
        ConnectionFailed's subclasses; NotSupported for `operations` before Kafka 2.3.
        """
        request = MetadataRequest(topics, operations=operations, keep_errors=keep_errors)
        deadline = self._deadline(timeout_s)
        for attempt in (1, 2):
            began = time.monotonic()
            try:
                state = self._metadata(request, deadline)
                break
            except PeerClosed:
                if attempt == 2:
                    raise
            except ConnectionTimedOut:
                self._silence.lost(began)
                raise
        self._brokers.state = ClusterState(state.cluster_id, state.controller_id, state.brokers, {})
        return state

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
        """«host:port» of the bootstrap server that answered."""
        return str(self._brokers.reached_address)

    def api_version(self, api_key: int) -> int | None:
        """The highest version of an API that the broker which answered has; None when it lacks it."""
        found = self._brokers.api_versions.get(api_key)
        return found[1] if found else None

    def require(self, api_key: int, version: int, what: str) -> None:
        """Raise NotSupported, before any work begins, with the Kafka version that `what` needs.

        That is where the broker that answered lacks an API, or a version of it.
        """
        found = self.api_version(api_key)
        if found is None or found < version:
            needed = version_needed(api_key, version) or "a later release"
            raise NotSupported(f"{self.reached} is too old for {what}", hint=f"Kafka {needed} or newer is needed")

    # --- requests -------------------------------------------------------------------------------------------------

    def send(
        self,
        request: Any,
        *,
        node_id: int | None = None,
        timeout_s: float | None = None,
        changes: bool | None = None,
    ) -> Any:
        """One request of kafka-python's to one broker (None: any), and its answer. Error codes are the caller's.

        changes: whether it changes something; None decides by the request. Without an answer that is
        OutcomeUnknown, else ConnectionTimedOut or another ConnectionFailed. Raises NotSupported with the version
        that is needed, NotFound for a broker id that is not in the cluster.
        """
        answer = self._ask({node_id: request}, timeout_s, changes)[node_id]
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def send_each(
        self, requests: Mapping[int, Any], *, timeout_s: float | None = None, changes: bool | None = None
    ) -> dict[int, Any]:
        """A request for each of several brokers, all in flight at once: node id → answer or KctlError."""
        each: dict[int | None, Any] = dict(requests.items())
        answers = self._ask(each, timeout_s, changes)
        return {node: answer for node, answer in answers.items() if node is not None}

    def dial(self, nodes: Iterable[int], *, timeout_s: float | None = None) -> dict[int, Connection | KctlError]:
        """A connection to each of several brokers for the caller alone, who closes it: node id → it or why not."""
        return self._brokers.dial(nodes, self._deadline(timeout_s))

    def dial_known(self, brokers: Collection[Broker], *, timeout_s: float) -> dict[int, Connection | KctlError]:
        """`dial` for brokers whose addresses the caller has. Unlike the other methods this may run in any thread."""
        return self._brokers.dial_known({broker.id: broker for broker in brokers}, Deadline(timeout_s))

    @contextmanager
    def asking_silent_brokers_once(self) -> Iterator[None]:
        """While the block runs, a broker that let a request time out is asked no more: its answers are that error.

        For passes with many requests in a row; elsewhere such a broker is asked again after a while
        (kctl.protocol.silence).
        """
        self._silence.for_good = True
        try:
            yield
        finally:
            self._silence.for_good = False
            self._silence.forget()

    @contextmanager
    def ending_by(self, deadline: Deadline) -> Iterator[None]:
        """While the block runs, each call ends by then, whatever its own limit is."""
        self._last = deadline
        try:
            yield
        finally:
            self._last = None

    def _deadline(self, timeout_s: float | None) -> Deadline:
        seconds = self._silence.limit_s(timeout_s or self.timeout_s)
        return Deadline(seconds) if self._last is None else self._last.at_most(seconds)

    def _ask(
        self, requests: Mapping[int | None, Any], timeout_s: float | None, changes: bool | None
    ) -> dict[int | None, Any]:
        silence = self._silence
        known: dict[int | None, Any] = {
            node: error for node in requests if node is not None and (error := silence.of(node)) is not None
        }
        rest = {node: request for node, request in requests.items() if node not in known}
        if not rest:
            return known
        began = time.monotonic()
        answers = self._brokers.ask(rest, self._deadline(timeout_s), changes=changes)
        late = {node: each for node, each in answers.items() if isinstance(each, (ConnectionTimedOut, OutcomeUnknown))}
        for node, late_error in late.items():
            if node is not None and isinstance(late_error, ConnectionTimedOut):
                silence.keeps(node, late_error, began)
        if late:
            silence.lost(began)
        return {**answers, **known}

    def send_to_controller(self, request: Any, *, timeout_s: float | None = None) -> Any:
        """`send` to the controller, looked up anew; again after NOT_CONTROLLER, which means that nothing was done.

        Raises what `send` raises; OperationFailed when there is no controller.
        """
        deadline = self._deadline(timeout_s)
        patience = deadline.at_most(_ELECTION_WAIT_S)
        while True:
            problem: KctlError
            controller = self._brokers.refresh(deadline).controller_id
            if controller is None:
                problem = OperationFailed("the cluster has no controller", hint="are enough brokers and ZooKeepers up?")
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
                    message = f"{exc.message}; it was only asked to check, and nothing was changed"
                    raise ConnectionTimedOut(message, hint=exc.hint) from None
                else:
                    if not _has_error(answer, ErrorCode.NOT_CONTROLLER):
                        return answer
                    problem = error_for(ErrorCode.NOT_CONTROLLER, None, subject=f"broker {controller}")
            if patience.expired:
                raise problem
            time.sleep(_ELECTION_POLL_S)

    # --- kafka-python's clients -------------------------------------------------------------------------------------

    def producer(self, **settings: Any) -> KafkaProducer:
        """kafka-python's producer: idempotent with acks=all unless `settings` say otherwise. The caller closes it."""
        from kctl.base.logs import quiet_kafka

        quiet_kafka()
        from kafka import KafkaProducer

        if not {"acks", "enable_idempotence"} & settings.keys():
            settings = {"acks": "all", "enable_idempotence": True, **settings}
        with _kafka_errors(self.target.name):
            return KafkaProducer(**{**self._settings(), **settings})

    def consumer(self, *topics: str, **settings: Any) -> KafkaConsumer:
        """kafka-python's consumer. The caller closes it."""
        from kctl.base.logs import quiet_kafka

        quiet_kafka()
        from kafka import KafkaConsumer

        with _kafka_errors(self.target.name):
            return KafkaConsumer(*topics, **{**self._settings(), **settings})

    def _settings(self) -> dict[str, Any]:
        """What all of kafka-python's clients take. Checks first that they will reach what brokers advertise."""
        self._check_advertised()
        security = self.target.security
        settings: dict[str, Any] = {
            "bootstrap_servers": [str(self._brokers.reached_address)],
            "client_id": wire.CLIENT_ID,
            "security_protocol": security.protocol,
            "bootstrap_timeout_ms": round(min(self.timeout_s, 10.0) * 1000),
            # Its back-off grows to 30 s, and a producer stalls for as long after a leader's death.
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
        """Raise when none of a few brokers can be reached where they advertise themselves: their clients would hang."""
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
    """A producer without a ClusterClient, after the preflight. The caller closes it."""
    with connect(target, timeout_s=timeout_s) as client:
        return client.producer(**settings)


def consumer_for(target: Target, *topics: str, timeout_s: float = 30.0, **settings: Any) -> KafkaConsumer:
    """A consumer without a ClusterClient, after the preflight. The caller closes it."""
    with connect(target, timeout_s=timeout_s) as client:
        return client.consumer(*topics, **settings)


def error_from(exc: KafkaError, *, subject: str) -> KctlError:
    """An exception of kafka-python's clients as one of kctl's. Its text is left out: it may embed whole requests."""
    from kafka import errors

    code = getattr(exc, "errno", None)
    if isinstance(code, int) and code > 0:
        if isinstance(exc, errors.RequestTimedOutError):
            return OutcomeUnknown(f"{subject}: no answer in time", hint="look at the state before you try again")
        return error_for(code, None, subject=subject)
    if isinstance(exc, errors.KafkaTimeoutError):
        return ConnectionTimedOut(f"{subject}: no answer in time", hint="--timeout gives it more time")
    if isinstance(exc, (errors.KafkaConnectionError, errors.NodeNotReadyError)):
        return ConnectionFailed(f"{subject}: the connection to the broker was lost", hint="is the broker up?")
    return OperationFailed(f"{subject}: {type(exc).__name__}")


@contextmanager
def _kafka_errors(subject: str) -> Iterator[None]:
    from kafka.errors import KafkaError

    try:
        yield
    except KafkaError as exc:
        raise error_from(exc, subject=subject) from None


def _has_error(answer: Any, code: int) -> bool:
    """Whether any error_code in an answer, at any depth, is `code`."""
    pending = [answer.to_dict()]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if value.get("error_code") == code:
                return True
            pending.extend(v for v in value.values() if isinstance(v, (dict, list)))
        elif isinstance(value, list):
            pending.extend(v for v in value if isinstance(v, (dict, list)))
    return False
