"""Inject faults into a cluster and check that no acknowledged record is lost.

A scenario creates a test topic, runs an Experiment on it, injects its faults, and returns a verdict:

    folder.mkdir(mode=0o700)
    settings = ProducerSettings(topic, new_run(), acks="all", idempotent=True, per_s=1000)
    with Experiment(client.target, settings, folder) as experiment:
        experiment.wait_writes(100, timeout_s=60)          # the baseline before the fault
        experiment.fault("kill -9 of broker 1", 1)         # records the time, then:
        control.kill(1)
        experiment.wait_writes(100, timeout_s=60)          # every partition accepts writes again
        control.start(1)
        experiment.wait_recovered(timeout_s=120)           # every partition has a leader and a full ISR
        verdict = experiment.finish(client, budgets=Budgets(max_gap_ms=15_000, max_isr_ms=60_000))
    verdict.ok, verdict.violated, verdict.breaches, verdict.findings.lost.first …

See kctl.validate.invariants for the invariants. Pass invariants that the settings do not guarantee (duplicated
and out_of_order without idempotence, lost with acks=1) as `tolerated`; they are still counted. The evaluation is pure:

    read_journal → history (arrays) → invariants.check, gaps.find_gaps;  sampler → timeline.recoveries;  verdict.judge

so a run can be evaluated even if kctl was killed: read_faults(folder), read_sent(folder), read_log(client, …),
read_delivered(folder). `records.key_of(run, partition, sequence)` is the key to find a lost record with `segment
find`. The processes (producer_process, consumer_process) exit with their parent; processes.py starts, watches and stops
them.
"""
