"""A run: create topics, run scenarios one by one, return their verdicts, and remove everything at the end.

    with begin(target, client, injection, plan, options, progress) as run:  # refused while another run is active
        for row in plan.possible:
            result = run.scenario(row)

`with` cleans up in any case, even after Ctrl-C; the evidence stays in `run.folder`.
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
from kctl.validate.cleanup import clean_up, delete
from kctl.validate.evidence import MissingRecord, find_missing
from kctl.validate.experiment import Experiment
from kctl.validate.fault_injection import Breaker, FaultInjection
from kctl.validate.fault_log import read_faults
from kctl.validate.leaders import non_preferred, restore_leaders
from kctl.validate.other_topics import OtherTopics
from kctl.validate.plan import PlannedScenario, ValidationOptions, ValidationPlan, refuse_others, wait_healthy
from kctl.validate.report.plot import Plot, plot_of
from kctl.validate.report.verdict import Budgets, Verdict
from kctl.validate.scenarios import find
from kctl.validate.stage import ProgressLine, Stage, scenario_failed
from kctl.validate.workload.processes import read_sent
from kctl.validate.workload.records import new_run
from kctl.validate.workload.settings import ProducerSettings

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_STEADY_S = 3.0  # of normal writes, before and after a fault
_MIN_RECORDS = 20
_READ_S = 60.0
_ACK_S = 10.0  # without idempotence, where a batch without a response is resent and may be duplicated


@dataclass(frozen=True)
class Trial:
    """The settings of a producer and its topic."""

    topic: str
    run: str
    acks: str
    idempotent: bool
    min_insync: int
    assignment: tuple[tuple[int, ...], ...]
    unclean: bool


@dataclass(frozen=True)
class ScenarioResult:
    """The result of a trial. missing: lost and undelivered records; folder: its journals."""

    scenario: str
    trial: Trial
    verdict: Verdict
    missing: list[MissingRecord]
    plot: Plot
    folder: Path
    duration_ms: int


@dataclass
class ValidationRun:
    """A running validation; `with` cleans up at the end.

    run_id: part of the names of its topics. folder: of the evidence. non_preferred: partitions that were not led by
    their preferred replica before. not_led: after `with`, the reason why leaders of other topics were not restored.
    """

    run_id: str
    target: Target
    client: ClusterClient
    injection: FaultInjection
    plan: ValidationPlan
    options: ValidationOptions
    journal: Journal
    folder: Path
    progress: ProgressLine
    non_preferred: frozenset[TopicPartition] = frozenset()
    not_led: str | None = None

    def __enter__(self) -> ValidationRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, _: object) -> None:
        """Clean up, with signals deferred. If that fails, raises OperationFailed that includes the original error."""
        outcome = "done" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
        try:
            with deferred_interrupts():
                clean_up(
                    self.journal,
                    self.injection,
                    self.target,
                    outcome=outcome,
                    start_s=self.options.wait_s,
                    progress=self.progress,
                )
                self._restore_leaders()
        except KctlError as failure:
            if not isinstance(exc, KctlError):
                raise
            raise OperationFailed(f"{exc.message}; {failure.message}", hint=failure.hint) from exc
        finally:
            self.journal.close()

    def _restore_leaders(self) -> None:
        """Restore leaders of other topics if a fault was injected. A failure does not fail the validation."""
        if not any(entry["step"] == leftovers.DOWN for entry in self.journal.entries):
            return
        self.progress("restoring the leaders of other topics")
        try:
            failures = restore_leaders(self.client, self.non_preferred)
        except KctlError as exc:
            self.not_led = exc.message
            return
        if failures:
            more = f", and {len(failures) - 1:,} more partitions" if len(failures) > 1 else ""
            self.not_led = f"{failures[0].tp}: {failures[0].reason}{more}"

    def scenario(self, planned: PlannedScenario) -> ScenarioResult:
        """Run a scenario and return its result. Raises OperationFailed if it did not complete."""
        scenario = find(planned.scenario)
        planned = self.place(planned)
        trial = self.trial(
            planned, self.options.acks, self.options.idempotent, planned.min_insync_replicas, scenario.name
        )
        budgets = self.options.budgets if scenario.measures else Budgets()
        return self.trials([trial], planned.scenario, self.options.per_s, budgets)[0]

    def place(self, planned: PlannedScenario) -> PlannedScenario:
        """Return the scenario with a new placement of its topic.

        Earlier scenarios may have moved the controller, and new topics may exist. Raises the errors of `trials`.
        """
        if not find(planned.scenario).unclean:
            return planned
        try:
            self._ready()
            state, controller = self.client.metadata(), read_controller(self.client).controller_id
            return replace(planned, assignment=OtherTopics.read(self.client, state, controller).required_assignment())
        except KctlError as exc:
            raise self.failure(planned.scenario, exc) from exc

    def trial(
        self, planned: PlannedScenario, acks: str, idempotent: bool, min_insync: int, name: str
    ) -> Trial:  # fmt: skip
        """Return a trial. name: unique within the run."""
        topic = f"{leftovers.PREFIX}{self.run_id}-{name}"
        unclean = find(planned.scenario).unclean
        return Trial(topic, new_run(), acks, idempotent, min_insync, planned.assignment, unclean)

    def trials(self, trials: Sequence[Trial], scenario: str, per_s: float, budgets: Budgets) -> list[ScenarioResult]:
        """Run several trials under the same faults.

        Raises OperationFailed, and Refused if the cluster is not ready and nothing was changed yet.
        """
        started = time.monotonic()
        try:
            self._ready()
            for trial in trials:
                self._create(trial)
            self._refuse_others()
            verdicts = self._experiment(trials, scenario, per_s, budgets)
            results = [
                self._result(scenario, trial, verdict, started) for trial, verdict in zip(trials, verdicts, strict=True)
            ]
        except KctlError as exc:
            raise self.failure(scenario, exc) from exc
        self.progress("deleting the topics of the validation")
        with suppress(KctlError):  # the results matter more; the clean-up retries, and reports a failure
            delete(self.journal, self.client, [trial.topic for trial in trials])
        return results

    def failure(self, scenario: str, exc: KctlError) -> KctlError:
        """Return the error of a scenario: unchanged if the run has changed nothing yet."""
        changed = any(entry["step"] != leftovers.BEGIN for entry in self.journal.entries)
        return scenario_failed(scenario, exc) if changed else exc

    def _ready(self) -> None:
        """Wait until all partitions are in sync: some may lag after the previous scenario or a long confirmation.

        Raises Refused.
        """
        self.progress("waiting until all partitions of the cluster are in sync")
        wait_healthy(self.client, self.options.wait_s, ignore=f"{leftovers.PREFIX}{self.run_id}-")

    def _refuse_others(self) -> None:
        """Raise Refused if another run started at the same time; both see each other's topics now."""
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
                self.progress(f"starting the producer and the consumer of {trial.topic}")
                folder = self._folder(trial)
                folder.mkdir(mode=0o700, parents=True)
                settings = _settings(trial, per_s)
                experiments.append(stack.enter_context(Experiment(self.target, settings, folder)))
            each = per_s * _STEADY_S / len(trials[0].assignment)
            stage = Stage(
                self.client, Breaker(self.injection, self.journal), experiments, self._folder(trials[0]),
                max(_MIN_RECORDS, round(each)), self.progress, self.options.wait_s,
            )  # fmt: skip
            find(scenario).run(stage)
            self.progress("reading the log of the topic")
            return [
                experiment.finish(
                    self.client,
                    budgets=budgets,
                    tolerated=() if trial.idempotent else NOT_GUARANTEED,
                    timeout_s=_READ_S,
                )
                for trial, experiment in zip(trials, experiments, strict=True)
            ]

    def _folder(self, trial: Trial) -> Path:
        return self.folder / trial.topic.removeprefix(f"{leftovers.PREFIX}{self.run_id}-")

    def _result(self, scenario: str, trial: Trial, verdict: Verdict, started: float) -> ScenarioResult:
        folder = self._folder(trial)
        lost_records, undelivered = verdict.findings.lost.first, verdict.findings.not_delivered.first
        partitions = {each.partition for each in lost_records} | {each.partition for each in undelivered}
        folders = {number: self.injection.log_folders(trial.topic, number) for number in partitions}
        return ScenarioResult(
            scenario, trial, verdict, find_missing(verdict.findings, trial.run, folders),
            plot_of(read_sent(folder), read_faults(folder)), folder, round((time.monotonic() - started) * 1000),
        )  # fmt: skip


NOT_GUARANTEED = ("duplicated", "out_of_order")  # without idempotence


def _settings(trial: Trial, per_s: float) -> ProducerSettings:
    settings = ProducerSettings(
        trial.topic, trial.run, acks=trial.acks, idempotent=trial.idempotent, resend=not trial.idempotent, per_s=per_s
    )
    return settings if trial.idempotent else replace(settings, timeout_s=_ACK_S)


def begin(
    target: Target,
    client: ClusterClient,
    injection: FaultInjection,
    plan: ValidationPlan,
    options: ValidationOptions,
    progress: Callable[[str], None],
) -> ValidationRun:
    """Start a run.

    Raises Busy if another run is active, OperationFailed if the evidence cannot be written, and subclasses of
    ConnectionFailed.
    """
    run = new_run()[:8]
    folder = leftovers.folder(plan.cluster_id) / f"evidence-{run}"
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as exc:
        raise OperationFailed(f"cannot write {folder}: {exc.strerror}") from None
    state = client.metadata()
    journal = leftovers.begin(plan.cluster, plan.cluster_id, run, folder, list(state.brokers.values()))
    return ValidationRun(run, target, client, injection, plan, options, journal, folder, progress, non_preferred(state))
