"""A cluster for tests of reassignments, inspected without kctl: by ZooKeeper's nodes and the folders on disk.

Assignments, copies under way, leaders, in-sync replicas and all dynamic configs are read from ZooKeeper, log dirs from
the file system. Topics, configs and other users' reassignments are made by plain requests.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from kafka_admin import kafka_admin
from kctl.deploy.runtime.java import find_java
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target
from kctl_forks import KILLED_AT
from kctl_testing import Kctl, Result, eventually
from reassign_traffic import Traffic
from zookeeper_writer import zookeeper_writer

_FULL_DISKS = Path(__file__).with_name("kctl_full_disks.py")
_RECORD_BYTES = 20_000
_NOTICES = "/config/changes"
_NOTICED_S = 10.0
_JAVA_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"

Replicas = dict[int, tuple[int, ...]]


def _is(look: Callable[[], object], wanted: object) -> bool:
    return look() == wanted


class Arena:
    """A running cluster, and a kctl with separate journals for this test.

    bootstrap: the value of the option. folder: the cluster's folder; None if its files and processes are not inspected.
    """

    def __init__(self, kctl: Kctl, name: str, bootstrap: str, zk: Any, folder: Path | None, work: Path) -> None:
        self.kctl = kctl
        self.name = name
        self.bootstrap = bootstrap
        self.work = work
        self._zk = zk
        self._folder = folder
        self._target = Target(name=name, bootstrap_servers=tuple(bootstrap.split(",")))
        self._topics: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    # --- looking ----------------------------------------------------------------------------------------------------

    def _json(self, path: str) -> Any:
        from kazoo.exceptions import NoNodeError

        try:
            data, _ = self._zk.get(path)
        except NoNodeError:
            return None
        return json.loads(data) if data else None

    def _children(self, path: str) -> list[str]:
        return sorted(self._zk.get_children(path)) if self._zk.exists(path) else []

    def topics(self) -> list[str]:
        return self._children("/brokers/topics")

    def replicas(self, topic: str) -> Replicas:
        """Return partition → brokers from ZooKeeper; during a move, old and new ones together."""
        found = self._json(f"/brokers/topics/{topic}") or {"partitions": {}}
        return {int(number): tuple(ids) for number, ids in sorted(found["partitions"].items(), key=lambda i: int(i[0]))}

    def moving(self) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return (topic, partition) → (brokers that it gains, brokers that it loses) of the whole cluster."""
        found: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {}
        for topic in self.topics():
            state = self._json(f"/brokers/topics/{topic}") or {}
            adding, removing = state.get("adding_replicas", {}), state.get("removing_replicas", {})
            for number in {*adding, *removing}:
                found[topic, int(number)] = (tuple(adding.get(number, ())), tuple(removing.get(number, ())))
        return found

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """Return leader, isr and leader_epoch of a partition."""
        found = self._json(f"/brokers/topics/{topic}/partitions/{partition}/state")
        assert found is not None
        return dict(found)

    def leaders(self, topic: str) -> dict[int, int]:
        return {number: self.state(topic, number)["leader"] for number in self.replicas(topic)}

    def in_sync(self, topic: str) -> bool:
        """Return True if every replica of the topic is in sync."""
        return all(set(self.state(topic, n)["isr"]) == set(ids) for n, ids in self.replicas(topic).items())

    def configs(self) -> dict[str, dict[str, str]]:
        """Return all dynamic configs of topics and brokers, e.g. `topics/orders` → settings."""
        found = {}
        for kind in ("topics", "brokers"):
            for name in self._children(f"/config/{kind}"):
                entries = (self._json(f"/config/{kind}/{name}") or {}).get("config")
                if entries:
                    found[f"{kind}/{name}"] = dict(entries)
        return found

    def registered(self) -> set[int]:
        return {int(name) for name in self._children("/brokers/ids")}

    def controller(self) -> int:
        return int((self._json("/controller") or {"brokerid": -1})["brokerid"])

    def log_dirs(self, topic: str) -> dict[tuple[int, int], list[str]]:
        """Return (broker, partition) → the paths of its log dirs; two during a move between them."""
        assert self._folder
        found: dict[tuple[int, int], list[str]] = {}
        for path in sorted(self._folder.glob(f"broker-*/data-*/{topic}-*")):
            name = path.name.removesuffix("-delete").removesuffix("-stray")
            if not path.name.endswith(("-delete", "-stray")):
                number = int(name.removeprefix(f"{topic}-").split(".")[0])
                found.setdefault((int(path.parent.parent.name.removeprefix("broker-")), number), []).append(
                    str(path.parent)
                )
        return found

    def brokers_holding(self, broker: int) -> list[str]:
        """Return the partitions of any topic with a replica on the broker, including copies in progress."""
        return [f"{t}-{n}" for t in self.topics() for n, ids in self.replicas(t).items() if broker in ids]

    def snapshot(self, *topics: str) -> dict[str, Any]:
        """Return assignments, moves and configs as one value, for comparisons."""
        return {
            "replicas": {t: self.replicas(t) for t in topics or self.topics()},
            "moving": self.moving(),
            "configs": self.configs(),
        }

    # --- acting -----------------------------------------------------------------------------------------------------

    def connect(self) -> ClusterClient:
        return connect(self._target, timeout_s=20)

    def make_topic(
        self, name: str, replicas: Sequence[Sequence[int]], *, size: int = 0, named: str | None = None, **config: str
    ) -> str:
        """Create a topic with these replicas, and `size` bytes per partition in segments of 512 KiB.

        Its name is `named`, or a new one that begins with `name`.
        """
        from kafka.protocol.admin import CreateTopicsRequest

        topic = named or f"{name}.{os.getpid()}.{len(self._topics)}.{time.monotonic_ns() % 10**6}"
        kind = CreateTopicsRequest.CreatableTopic
        settings = {"segment.bytes": "524288", "min.insync.replicas": "1"} | {
            key.replace("_", "."): value for key, value in config.items()
        }
        request = CreateTopicsRequest(
            topics=[
                kind(
                    name=topic,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        kind.CreatableReplicaAssignment(partition_index=number, broker_ids=list(ids))
                        for number, ids in enumerate(replicas)
                    ],
                    configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
                )
            ],
            timeout_ms=20_000,
        )
        with self.connect() as client:
            (answer,) = client.send_to_controller(request).topics
            assert answer.error_code == 0, (answer.error_code, answer.error_message)
            self._topics.append(topic)
            if size:
                _fill(client, topic, len(replicas), size)
        if not size:  # the brokers have its metadata
            eventually(lambda: self._led(topic, len(replicas)), what=f"{topic} has leaders")
        return topic

    def _led(self, topic: str, partitions: int) -> bool:
        with self.connect() as client:
            found = client.metadata([topic]).topics.get(topic)
            return found is not None and sum(p.leader >= 0 for p in found.partitions) == partitions

    def checksums(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return partition → (number of records, CRC of their values), as read by a consumer."""
        from kafka.structs import TopicPartition

        found = {}
        with self.connect() as client:
            consumer = client.consumer(auto_offset_reset="earliest", group_id=None, enable_auto_commit=False)
            ends: Any = consumer
            parts = [TopicPartition(topic, n) for n in self.replicas(topic)]
            consumer.assign(parts)
            last = ends.end_offsets(parts)
            counts, sums = dict.fromkeys(parts, 0), dict.fromkeys(parts, 0)
            deadline = time.monotonic() + 30
            while any((consumer.position(tp) or 0) < last[tp] for tp in parts):
                assert time.monotonic() < deadline, f"{topic} cannot be read"
                for tp, records in consumer.poll(timeout_ms=500).items():
                    for record in records:
                        counts[tp] += 1
                        sums[tp] = zlib.crc32(record.value or b"", sums[tp])
            consumer.close()
            for tp in parts:
                found[tp.partition] = (counts[tp], sums[tp])
        return found

    def set_configs(self, kind: str, name: str, **values: str | None) -> None:
        """Set dynamic configs of a `topics` or `brokers` entry like an operator; None deletes; _ is a dot.

        Returns once a broker reports its own, which it receives from ZooKeeper.
        """
        from kafka.protocol import admin

        from kctl.configs.dynamic import Resource, read_dynamic

        protocol: Any = admin
        request_class = protocol.IncrementalAlterConfigsRequest
        resource_class = request_class.AlterConfigsResource
        rows = [
            resource_class.AlterableConfig(
                name=key.replace("_", "."), config_operation=0 if value is not None else 1, value=value
            )
            for key, value in values.items()
        ]
        resource_type = 2 if kind == "topics" else 4
        request = request_class(
            resources=[resource_class(resource_type=resource_type, resource_name=name, configs=rows)],
            validate_only=False,
        )
        with self.connect() as client:
            node = int(name) if kind == "brokers" and name.isdigit() and int(name) in self.registered() else None
            deadline = time.monotonic() + 10
            while True:  # not every broker has a new topic at once
                (answer,) = client.send(request, node_id=node, changes=True).responses
                if answer.error_code != 3 or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            assert answer.error_code == 0, (answer.error_code, answer.error_message)
            if node is not None:
                settings = {key.replace("_", "."): value for key, value in values.items()}
                broker = Resource.broker(node)
                there = partial(read_dynamic, client, [broker], list(settings))
                self.wait_until(partial(_is, there, {broker: settings}), what=f"{broker} goes by it")

    def throttle(
        self, topic: str, rate: int, lists: tuple[str, str] = ("*", "*"), *, giver: int, receiver: int
    ) -> None:
        """Throttle copies of a topic like an operator. Returns once both brokers apply it.

        A broker applies changes in order, and reports only its own rate: so the topic's lists (of leaders, of
        followers) are set first.
        """
        leaders, followers = (f"{side}_replication_throttled" for side in ("leader", "follower"))
        self.set_configs("topics", topic, **{f"{leaders}_replicas": lists[0], f"{followers}_replicas": lists[1]})
        rates = {giver: f"{leaders}_rate", receiver: f"{followers}_rate"}
        for node, setting in rates.items():
            self.set_configs("brokers", str(node), **{setting: str(rate)})

    def alter(self, targets: Mapping[tuple[str, int], Sequence[int] | None]) -> None:
        """Start a reassignment like another user; None cancels one."""
        from kafka.protocol import admin

        protocol: Any = admin
        request_class = protocol.AlterPartitionReassignmentsRequest
        topic_class = request_class.ReassignableTopic
        request = request_class(
            timeout_ms=20_000,
            topics=[
                topic_class(
                    name=topic,
                    partitions=[
                        topic_class.ReassignablePartition(
                            partition_index=number, replicas=None if ids is None else list(ids)
                        )
                    ],
                )
                for (topic, number), ids in targets.items()
            ],
        )
        with self.connect() as client:
            answer = client.send_to_controller(request)
        codes = [p.error_code for t in answer.responses for p in t.partitions]
        assert answer.error_code == 0, answer
        assert set(codes) <= {0, 85}, answer  # 85: no reassignment to cancel

    def broker_log_dirs(self, broker: int) -> list[str]:
        """Return both log dirs of a broker."""
        assert self._folder
        return [str(path) for path in sorted((self._folder / f"broker-{broker}").glob("data-*"))]

    def place(self, wanted: Mapping[tuple[int, str, int], str]) -> None:
        """Move replicas, (broker, topic, partition), to log dirs, and wait for the end."""
        from kafka.protocol import admin

        protocol: Any = admin
        request_class = protocol.AlterReplicaLogDirsRequest
        dir_class = request_class.AlterReplicaLogDir
        with self.connect() as client:
            for (broker, topic, number), path in wanted.items():
                rows = [dir_class.AlterReplicaLogDirTopic(name=topic, partitions=[number])]
                request = request_class(dirs=[dir_class(path=path, topics=rows)])
                answer = client.send(request, node_id=broker, changes=True)
                assert [p.error_code for t in answer.results for p in t.partitions] == [0], answer
        eventually(
            lambda: all(self.log_dirs(t).get((b, n)) == [path] for (b, t, n), path in wanted.items()),
            what="the replicas are in their log dirs",
        )

    def elect(self, *topics: str) -> None:
        """Elect preferred leaders for all partitions."""
        with self.connect() as client, kafka_admin(client) as admin:
            admin.elect_leaders(0, {t: list(self.replicas(t)) for t in topics}, raise_errors=False)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until ZooKeeper has neither it nor its configs, which takes all of its replicas."""
        from kafka.protocol.admin import DeleteTopicsRequest

        row = DeleteTopicsRequest.DeleteTopicState(name=topic)
        with self.connect() as client:
            client.send_to_controller(DeleteTopicsRequest(topics=[row], timeout_ms=1_000))
        self.wait_until(
            lambda: topic not in self.topics() and f"topics/{topic}" not in self.configs(),
            what=f"{topic} is deleted",
            seconds=60,
        )
        if topic in self._topics:
            self._topics.remove(topic)

    def add_partitions(self, topic: str, count: int) -> None:
        with self.connect() as client, kafka_admin(client) as admin:
            admin.create_partitions({topic: count})

    def kill(self, node: str) -> None:
        """Kill -9 a broker (`2`, `controller`)."""
        self.kctl.ok("cluster", "kill", self.name, node, "--yes")

    def start(self) -> None:
        """Start all stopped brokers, once their ZooKeeper sessions have expired."""
        self.kctl.ok("cluster", "start", self.name, timeout=120)

    def on_another_machine(self) -> Arena:
        """Return the same cluster, with a kctl without this one's journals."""
        kctl = self.kctl.with_environment(XDG_STATE_HOME=str(self.work / "elsewhere"))
        return Arena(kctl, self.name, self.bootstrap, self._zk, self._folder, self.work)

    # --- kctl's reassignments -----------------------------------------------------------------------------------------

    def reassign(self, command: str, *args: str, timeout: float = 150) -> Result:
        """Run `kctl topic reassign COMMAND …`, with confirmation."""
        confirmed = ["--yes"] if command in {"apply", "resume", "cancel", "rollback", "pause"} else []
        return self.kctl("topic", "reassign", command, *args, *confirmed, timeout=timeout)

    def plan(self, *args: str) -> tuple[dict[str, Any], str]:
        """Make a plan. Return its JSON, and the file for `apply`."""
        path = self.work / f"plan-{len(list(self.work.glob('plan-*')))}.json"
        done = self.reassign("plan", *args, "--out", str(path), "-o", "json")
        assert done.code == 0, str(done)
        return json.loads(path.read_text()), str(path)

    def write_plan(self, after: Mapping[tuple[str, int], Sequence[int]], **more: Any) -> str:
        """Write a plan in the format of Kafka's own tool, with a file of the current replicas beside it."""
        rows = [{"topic": t, "partition": n, "replicas": list(ids)} for (t, n), ids in after.items()]
        now = [{"topic": t, "partition": n, "replicas": list(self.replicas(t).get(n, ()))} for t, n in after]
        path = self.work / f"plan-{len(list(self.work.glob('plan-*')))}.json"
        document = {"version": 1, "partitions": rows, "current": {"version": 1, "partitions": now}, **more}
        path.write_text(json.dumps(document))
        return str(path)

    def killed(self, moment: str, step: str, *args: str) -> Result:
        """Run `kctl topic reassign …`, killed (-9) right before or after a step is written to the journal."""
        return self.kctl("topic", "reassign", *args, "--yes", env={KILLED_AT: f"{moment},{step},1"})

    def with_full_disks(self, *args: str) -> Result:
        """Run `kctl topic reassign …` with a reported free space of 100 kB in each log dir."""
        argv = [sys.executable, str(_FULL_DISKS), "topic", "reassign", *args, "--yes"]
        began = time.monotonic()
        done = subprocess.run(
            argv, input="", env=self.kctl.environment, capture_output=True, text=True, timeout=60, check=False
        )
        return Result(tuple(argv[2:]), done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def abandoned(self, plan: str, *args: str) -> None:
        """Run an apply that is killed (-9) while the brokers move its first batch."""
        topics = {row["topic"] for row in json.loads(Path(plan).read_text())["partitions"]}
        with self.running("apply", plan, *args) as process:
            self.wait_moving(*topics)
            process.kill()
            process.communicate()
        assert any(topic in topics for topic, _ in self.moving()), "it was killed too late"

    @contextmanager
    def running(self, command: str, *args: str) -> Iterator[subprocess.Popen[str]]:
        """Yield `kctl topic reassign …` in the background; killed at the end if it still runs."""
        with self.kctl.running("topic", "reassign", command, *args, "--yes") as process:
            self._process = process
            try:
                yield process
            finally:
                self._process = None
                if process.poll() is None:
                    process.kill()

    def journals(self) -> list[Path]:
        return sorted((Path(self.kctl.environment["XDG_STATE_HOME"]) / "kctl/reassignments").glob("*/*.jsonl"))

    def wait_until(self, check: Callable[[], bool], *, what: str, seconds: float = 60) -> None:
        """Wait like `eventually`, with shorter pauses, to act in the middle of a move."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
            time.sleep(0.03)

    def wait_moving(self, *topics: str) -> None:
        """Wait until the controller moves a partition of these topics."""

        def moves() -> bool:
            if any(topic in topics for topic, _ in self.moving()):
                return True
            ended = self._process is not None and self._process.poll() is not None
            assert not ended, f"it ended before anything moved: {self._process and self._process.communicate()}"
            return False

        self.wait_until(moves, what="partitions move")

    def wait_still(self, *topics: str, seconds: float = 60) -> None:
        """Wait until no partition moves."""
        eventually(lambda: not any(t in topics for t, _ in self.moving()), seconds=seconds, what="nothing moves")

    def traffic(self, topic: str, *, rate: float = 100, record_bytes: int = 200) -> Traffic:
        return Traffic(self.connect, topic, len(self.replicas(topic)), rate=rate, record_bytes=record_bytes)

    def java_tool(self, *args: str) -> Result:
        """Run Kafka's kafka-reassign-partitions."""
        libs = Path(self.kctl.environment["KAFKA_HOME"]) / "libs"
        argv = [
            str(find_java().executable), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*",
            _JAVA_TOOL, "--bootstrap-server", self.bootstrap, *args,
        ]  # fmt: skip
        began = time.monotonic()
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        return Result(tuple(argv[6:]), done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def java_verify(self, plan: str) -> str:
        """Return the output of Kafka's own tool for a plan; it removes no throttle."""
        done = self.java_tool("--reassignment-json-file", plan, "--verify", "--preserve-throttles")
        assert done.code == 0, str(done)
        return done.out

    # --- tidying ------------------------------------------------------------------------------------------------------

    def clean(self) -> None:
        """Cancel moves and delete this test's topics and all broker configs."""
        mine = {key: None for key in self.moving() if key[0] in self._topics}
        if mine:
            self.alter(mine)
        for topic in list(self._topics):
            if topic in self.topics():
                self.delete_topic(topic)
        for key, values in self.configs().items():
            kind, name = key.split("/")
            if kind == "brokers" and self._folder:
                self.set_configs(kind, name if name != "<default>" else "", **{
                    setting.replace(".", "_"): None for setting in values
                })  # fmt: skip
        self._remove_old_notices()

    def _remove_old_notices(self) -> None:
        """Remove config change notifications that are some seconds old, which all brokers have read.

        Brokers keep them for 15 minutes and read all of them at every change: hundreds would slow the cluster down."""
        from kazoo.exceptions import NoNodeError

        for name in self._children(_NOTICES):
            with suppress(NoNodeError):  # brokers remove the oldest ones themselves
                path = f"{_NOTICES}/{name}"
                if time.time() - self._zk.get(path)[1].created > _NOTICED_S:
                    self._zk.delete(path)


def _fill(client: ClusterClient, topic: str, partitions: int, size: int) -> None:
    """Write `size` bytes of noise to each partition, the same in each run."""
    producer = client.producer(linger_ms=20, max_request_size=1 << 20, batch_size=1 << 17)
    noise = random.Random(5).randbytes(_RECORD_BYTES)
    for partition in range(partitions):
        for number in range(size // _RECORD_BYTES):
            value = b"fill:%d:%d:%s" % (partition, number, noise[number % 97 :])
            producer.send(topic, value, partition=partition)
    producer.flush(timeout=60)
    producer.close()


@contextmanager
def reassign_cluster(kctl: Kctl, name: str) -> Iterator[tuple[str, Any, Path]]:
    """Yield the bootstrap servers, ZooKeeper and folder of four brokers in three racks, with two log dirs each.

    Brokers 1 and 4 share a rack. Fetches are small, because a throttle lets whole fetches pass; quota windows are
    short, so that it applies at once.
    """
    settings = {
        "zookeeper.session.timeout.ms": "6000",
        "auto.leader.rebalance.enable": "false",
        "replica.fetch.max.bytes": "65536",
        "replication.quota.window.num": "3",
        "alter.log.dirs.replication.quota.window.num": "3",
        "log.segment.delete.delay.ms": "1000",
    }
    options = [arg for key, value in settings.items() for arg in ("--config", f"{key}={value}")]
    created = kctl(
        "cluster", "create", name, "--use", "--layout", "pseudo-distributed", "--brokers", "4", "--rack", "r1,r2,r3",
        "--log-dirs", "2", "--heap", "192m", *options, timeout=180,
    )  # fmt: skip
    assert created.code == 0, f"{created}\n{kctl('cluster', 'logs', name, '--tail', '30').out}"
    context = kctl.json("context", "show", name)
    folder = kctl.home / ".local/share/kctl/clusters" / name
    try:
        with zookeeper_writer(context["zookeeper"]) as zk:
            yield ",".join(context["bootstrap_servers"]), zk, folder
    finally:
        destroyed = kctl("cluster", "destroy", name, "--yes", "--confirm-cluster", name, timeout=180)
        assert destroyed.code == 0, str(destroyed)
