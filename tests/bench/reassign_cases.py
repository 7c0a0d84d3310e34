"""Plans of reassignments from file to file: `kctl topic reassign plan` beside what kafka-reassign-partitions proposes.

Both read one file with the cluster's state and write a plan; the Java tool's own algorithm is called from its jar
(GenerateAssignment.java), because the tool itself needs a cluster. `moves` is how many replicas each would copy.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from cases import Setting
from kctl.reassign.planner.cluster import PlanCluster
from kctl_testing import SCRIPT
from measure import Figures, median, run_once
from reassign_inputs import even, skewed_leaders, uneven_racks, write_answers, write_export

_JAVA = Path(__file__).with_name("GenerateAssignment.java")
_READ = Path(__file__).with_name("read_state.py")
_TOOL = "ReassignPartitionsCommand"
PARTITIONS = 100_000


def reassign(setting: Setting) -> dict[str, Figures]:
    """100 brokers in 10 racks, 100,000 partitions: one leaves, five come, a third replica, leaders, uneven racks."""
    figures = {}
    everyone = range(100)
    with _setting(setting) as bench:
        figures.update(bench.kctl("leaders only", skewed_leaders(100, PARTITIONS), ["--leaders-only"]))
        of_three = even(100, PARTITIONS, 3)
        figures.update(bench.both("remove a broker", of_three, ["--remove-broker", "7"], set(everyone) - {7}))
        figures.update(bench.both("nothing to do", of_three, ["--balance", "replicas"], everyone))
        larger, new = even(100, PARTITIONS, 3, empty=5), ",".join(map(str, range(100, 105)))
        figures.update(bench.both("add 5 brokers", larger, ["--add-broker", new], range(105)))
        grown = ["--replication-factor", "3"]
        figures.update(bench.both("factor 2 to 3", even(100, PARTITIONS, 2), grown, everyone, factor=3))
        uneven = ["--balance", "replicas"]
        figures.update(bench.both("racks of 10, 20, 30, 40", uneven_racks(PARTITIONS), uneven, everyone))
    return figures


def reassign_million(setting: Setting) -> dict[str, Figures]:
    """1,000 brokers in 10 racks, 1,000,000 partitions: one broker leaves. One run each."""
    with _setting(replace(setting, runs=1)) as bench:
        leaving = ["--remove-broker", "7"]
        return bench.both("1,000,000 partitions", even(1000, 1_000_000, 3), leaving, set(range(1000)) - {7})


def reassign_read(setting: Setting) -> dict[str, Figures]:
    """A live cluster's state, from the answers of 100 brokers: Metadata, log dirs, reassignments."""
    with TemporaryDirectory(prefix="kctl-bench-reassign-") as folder:
        figures = {}
        for partitions in (10_000, PARTITIONS):
            place = Path(folder) / str(partitions)
            place.mkdir()
            write_answers(even(100, partitions, 3), place)
            argv = [sys.executable, str(_READ), str(place)]
            told = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
            assert told["partitions"] == told["sizes"] == partitions, told
            name = f"kctl's reader, {partitions:,} partitions, {told['requests']} requests"
            figures[name] = median([run_once(argv) for _ in range(setting.runs)])
        return figures


class _Bench:
    """A folder with the input, the plans and the compiled peer."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting, self.folder = setting, folder
        self.input, self.plan, self.proposal = (folder / f"{name}.json" for name in ("cluster", "plan", "proposal"))
        libs = f"{setting.libs}/*"
        subprocess.run(["javac", "-cp", libs, "-d", str(folder), str(_JAVA)], check=True)
        self.java = ["java", "-Xmx4G", "-cp", f"{libs}:{folder}", "GenerateAssignment"]

    def both(
        self, name: str, cluster: PlanCluster, goals: Sequence[str], brokers: Sequence[int] | set[int] | range,
        *, factor: int = 0,
    ) -> dict[str, Figures]:  # fmt: skip
        """The peer, then kctl, on one input."""
        write_export(cluster, self.input)
        ids = ",".join(map(str, sorted(brokers)))
        argv = [*self.java, str(self.input), ids, str(factor), str(self.proposal)]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        peer = self._measure(argv, json.loads(told)["moves"])
        return {f"{_TOOL}, {name}": peer, **self._kctl(name, goals)}

    def kctl(self, name: str, cluster: PlanCluster, goals: Sequence[str]) -> dict[str, Figures]:
        """kctl alone, where the peer has nothing like it."""
        write_export(cluster, self.input)
        return self._kctl(name, goals)

    def _kctl(self, name: str, goals: Sequence[str]) -> dict[str, Figures]:
        argv = [str(SCRIPT), "topic", "reassign", "plan", "--from-file", str(self.input), *goals]
        figures = self._measure([*argv, "--out", str(self.plan)], None)
        plan = json.loads(self.plan.read_text())
        assert plan["moves"] == plan["lower_bound"], "the plan is not proven to be the smallest"
        return {f"kctl topic reassign plan, {name}": replace(figures, moves=plan["moves"])}

    def _measure(self, argv: Sequence[str], moves: int | None) -> Figures:
        samples = []
        for _ in range(self.setting.runs):
            self.plan.unlink(missing_ok=True)
            samples.append(run_once(argv, self.setting.kctl.environment))
        return replace(median(samples), moves=moves)


@contextmanager
def _setting(setting: Setting) -> Iterator[_Bench]:
    with TemporaryDirectory(prefix="kctl-bench-reassign-") as folder:
        yield _Bench(setting, Path(folder))
