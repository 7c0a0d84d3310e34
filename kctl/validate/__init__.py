"""Proving what a cluster keeps of what it acknowledged, while something is done to it.

A scenario makes a topic of its own, runs an Experiment over it, does its fault, and has a verdict:

    folder.mkdir(mode=0o700)
    settings = ProducerSettings(topic, new_run(), acks="all", idempotent=True, per_s=1000)
    with Experiment(client.target, settings, folder) as experiment:
        experiment.wait_writes(100, timeout_s=60)          # the time before the fault, for comparison
        experiment.fault("kill -9 of broker 1", 1)         # names the moment, then:
        control.kill(1)
        experiment.wait_writes(100, timeout_s=60)          # every partition takes writes again
        control.start(1)
        experiment.wait_recovered(timeout_s=120)           # every leader is there, every ISR is full
        verdict = experiment.finish(client, budgets=Budgets(max_gap_ms=15_000, max_isr_ms=60_000))
    verdict.ok, verdict.violated, verdict.breaches, verdict.findings.lost.first …

What each invariant means is in kctl.validate.invariants; what a set-up does not promise (duplicated and out_of_order
without idempotence, lost with acks=1) is given as `tolerated`, and still counted. Everything that judges is pure:

    read_journal → history (arrays) → invariants.check, gaps.find_gaps;  sampler → timeline.recoveries;  verdict.judge

so that a run whose kctl was killed can still be judged: read_faults(folder), read_sent(folder),
read_log(client, …), read_delivered(folder).
`records.key_of(run, partition, sequence)` is the key by which `segment find` has a lost record, if any replica has it.
The processes (producer_process, consumer_process) end with their parent; processes.py starts, watches and stops them.
"""
