"""A run: its topics, one scenario after the other, their verdicts; and at its end nothing of it in the cluster.

    with begin(target, client, means, plan, wishes, told) as run:       # no other run is at work
        for row in plan.possible:
            result = run.scenario(row)

The `with` cleans up whatever happens, Ctrl-C included; the evidence stays in `run.folder`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.journal import Journal
from kctl.base.outcomes import ItemResult
from kctl.cluster.controller import read_controller
from kctl.deploy.interrupts import deferred_interrupts
from kctl.errors import KctlError, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.target import Target
from kctl.topics.create import create_topics, plan_create
from kctl.topics.new_topic import NewTopic
from kctl.validate import leftovers
from kctl.validate.bystanders import Bystanders
from kctl.validate.cleanup import clean_up, delete
from kctl.validate.evidence import Missing, find_missing
from kctl.validate.experiment import Experiment
from kctl.validate.leaders import astray, put_back
from kctl.validate.means import Breaker, Means
from kctl.validate.noted_faults import read_faults
from kctl.validate.plan import Plan, PlannedScenario, Wishes, refuse_others, wait_healthy
from kctl.validate.report.plot import Plot, plot_of
from kctl.validate.report.verdict import Budgets, Verdict
from kctl.validate.scenarios import find
from kctl.validate.stage import Stage, Told, began_and_failed
from kctl.validate.workload.processes import read_sent
from kctl.validate.workload.records import new_run
from kctl.validate.workload.settings import ProducerSettings

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_STEADY_S = 3.0  # of normal writes, before a fault and behind it
_LEAST_RECORDS = 20
_READ_S = 60.0
_ACK_S = 10.0  # without idempotence: what got no answer by then is repeated, and so may be there twice


@dataclass(frozen=True)
class Trial:
    """One producer's set-up, with a topic of its own."""

    topic: str
    run: str
    acks: str
    idempotent: bool
    min_insync: int
    assignment: tuple[tuple[int, ...], ...]
    unclean: bool


@dataclass(frozen=True)
class Result:
    """What came of one trial. missing: what became of lost and undelivered records; folder: its journals."""

    scenario: str
    trial: Trial
    verdict: Verdict
    missing: list[Missing]
    plot: Plot
    folder: Path
    duration_ms: int


@dataclass
class ValidationRun:
    """`with` cleans up at its end. run_id: in the names of its topics. folder: the evidence; stays. astray: partitions
    that their preferred replica did not lead before. not_led: after `with`, why leaders of others are not back; None
    when all are."""

    run_id: str
    target: Target
    client: ClusterClient
    means: Means
    plan: Plan
    wishes: Wishes
    journal: Journal
    folder: Path
    told: Told
    astray: frozenset[TopicPartition] = frozenset()
    not_led: str | None = None

    def __enter__(self) -> ValidationRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, _: object) -> None:
        """Signals wait until it is clean. Raises OperationFailed when it cannot be, with what else went wrong."""
        outcome = "done" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
        try:
            with deferred_interrupts():
                clean_up(
                    self.journal, self.means, self.target, outcome=outcome, start_s=self.wishes.wait_s, told=self.told
                )
                self._put_leaders_back()
        except KctlError as failure:
            if not isinstance(exc, KctlError):
                raise
            raise OperationFailed(f"{exc.message}; {failure.message}", hint=failure.hint) from exc
        finally:
            self.journal.close()

    def _put_leaders_back(self) -> None:
        """Where anything was broken. What fails is no failure of the validation: brokers do it later, or people."""
        if not any(entry["step"] == leftovers.DOWN for entry in self.journal.entries):
            return
        self.told("putting the leaders of other topics back")
        try:
            left = put_back(self.client, self.astray)
        except KctlError as exc:
            self.not_led = exc.message
            return
        if left:
            more = f", and {len(left) - 1:,} more partitions" if len(left) > 1 else ""
            self.not_led = f"{left[0].tp}: {left[0].reason}{more}"

    def scenario(self, planned: PlannedScenario) -> Result:
        """Raises OperationFailed when it did not come to its end."""
        found = find(planned.scenario)
        planned = self.placed(planned)
        trial = self.trial(planned, self.wishes.acks, self.wishes.idempotent, planned.min_insync_replicas, found.name)
        budgets = self.wishes.budgets if found.measures else Budgets()
        return self.trials([trial], planned.scenario, self.wishes.per_s, budgets)[0]

    def placed(self, planned: PlannedScenario) -> PlannedScenario:
        """Where its topic is to be now: scenarios before it have moved the controller, and topics of others may have
        come. Raises as `trials` does."""
        if not find(planned.scenario).unclean:
            return planned
        try:
            self._ready()
            state, controller = self.client.metadata(), read_controller(self.client).controller_id
            return replace(planned, assignment=Bystanders.read(self.client, state, controller).placed())
        except KctlError as exc:
            raise self.failure(planned.scenario, exc) from exc

    def trial(
        self, planned: PlannedScenario, acks: str, idempotent: bool, min_insync: int, name: str
    ) -> Trial:  # fmt: skip
        """name: within the run."""
        topic = f"{leftovers.PREFIX}{self.run_id}-{name}"
        unclean = find(planned.scenario).unclean
        return Trial(topic, new_run(), acks, idempotent, min_insync, planned.assignment, unclean)

    def trials(self, trials: Sequence[Trial], scenario: str, per_s: float, budgets: Budgets) -> list[Result]:
        """Several set-ups that see the same faults at the same time.

        Raises OperationFailed; and Refused when nothing was changed yet, and the cluster is not as it has to be.
        """
        began = time.monotonic()
        try:
            self._ready()
            for trial in trials:
                self._create(trial)
            self._alone()
            verdicts = self._experiment(trials, scenario, per_s, budgets)
            results = [
                self._result(scenario, trial, verdict, began) for trial, verdict in zip(trials, verdicts, strict=True)
            ]
        except KctlError as exc:
            raise self.failure(scenario, exc) from exc
        self.told("deleting the topics of the validation")
        with suppress(KctlError):  # what was found goes before it: the clean-up tries it again, and tells
            delete(self.journal, self.client, [trial.topic for trial in trials])
        return results

    def failure(self, scenario: str, exc: KctlError) -> KctlError:
        """What ends a scenario: as it is when the run has changed nothing yet."""
        begun = any(entry["step"] != leftovers.BEGIN for entry in self.journal.entries)
        return began_and_failed(scenario, exc) if begun else exc

    def _ready(self) -> None:
        """Until every partition, of others as well, is in sync: the scenario before may have left big ones behind, and
        the question may have waited long for its answer. Raises Refused."""
        self.told("waiting until all partitions of the cluster are in sync")
        wait_healthy(self.client, self.wishes.wait_s, own=f"{leftovers.PREFIX}{self.run_id}-")

    def _alone(self) -> None:
        """Two that began at the same time see each other's topics now. Raises Refused."""
        refuse_others(self.client, self.plan.cluster_id)

    def _create(self, trial: Trial) -> None:
        configs = {
            "min.insync.replicas": str(trial.min_insync),
            "unclean.leader.election.enable": str(trial.unclean).lower(),
            "retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete",
        }  # fmt: skip
        topic = NewTopic(trial.topic, assignment=trial.assignment, configs=configs)
        plan = plan_create(self.client, [topic])
        self.journal.append(leftovers.TOPIC, topic=trial.topic)
        for row in create_topics(self.client, [topic], plan):
            if row.result is not ItemResult.CREATED:
                raise OperationFailed(f"topic {trial.topic} could not be created: {row.error or row.result}")

    def _experiment(
        self, trials: Sequence[Trial], scenario: str, per_s: float, budgets: Budgets
    ) -> list[Verdict]:  # fmt: skip
        with ExitStack() as stack:
            experiments = []
            for trial in trials:
                self.told(f"starting the producer and the consumer of {trial.topic}")
                folder = self._folder(trial)
                folder.mkdir(mode=0o700, parents=True)
                settings = _settings(trial, per_s)
                experiments.append(stack.enter_context(Experiment(self.target, settings, folder)))
            each = per_s * _STEADY_S / len(trials[0].assignment)
            stage = Stage(
                self.client, Breaker(self.means, self.journal), experiments, self._folder(trials[0]),
                max(_LEAST_RECORDS, round(each)), self.told, self.wishes.wait_s,
            )  # fmt: skip
            find(scenario).run(stage)
            self.told("reading what the cluster has kept")
            return [
                experiment.finish(
                    self.client, budgets=budgets, tolerated=() if trial.idempotent else NOT_PROMISED, timeout_s=_READ_S
                )
                for trial, experiment in zip(trials, experiments, strict=True)
            ]

    def _folder(self, trial: Trial) -> Path:
        return self.folder / trial.topic.removeprefix(f"{leftovers.PREFIX}{self.run_id}-")

    def _result(self, scenario: str, trial: Trial, verdict: Verdict, began: float) -> Result:
        folder = self._folder(trial)
        lost, unread = verdict.findings.lost.first, verdict.findings.not_delivered.first
        concerned = {each.partition for each in lost} | {each.partition for each in unread}
        folders = {number: self.means.log_folders(trial.topic, number) for number in concerned}
        return Result(
            scenario, trial, verdict, find_missing(verdict.findings, trial.run, folders),
            plot_of(read_sent(folder), read_faults(folder)), folder, round((time.monotonic() - began) * 1000),
        )  # fmt: skip


NOT_PROMISED = ("duplicated", "out_of_order")  # without idempotence


def _settings(trial: Trial, per_s: float) -> ProducerSettings:
    settings = ProducerSettings(
        trial.topic, trial.run, acks=trial.acks, idempotent=trial.idempotent, resend=not trial.idempotent, per_s=per_s
    )
    return settings if trial.idempotent else replace(settings, timeout_s=_ACK_S)


def begin(
    target: Target, client: ClusterClient, means: Means, plan: Plan, wishes: Wishes, told: Callable[[str], None]
) -> ValidationRun:
    """Raises Busy when another run is at work, OperationFailed when the evidence cannot be written, and subclasses of
    ConnectionFailed."""
    run = new_run()[:8]
    folder = leftovers.folder(plan.cluster_id) / f"evidence-{run}"
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as exc:
        raise OperationFailed(f"cannot write {folder}: {exc.strerror}") from None
    state = client.metadata()
    journal = leftovers.begin(plan.cluster, plan.cluster_id, run, folder, list(state.brokers.values()))
    return ValidationRun(run, target, client, means, plan, wishes, journal, folder, told, astray(state))
