"""hooks.yaml: what is taken, what is refused and where, and what is run for it."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from kctl.base.address import Address
from kctl.commands.cluster import rolling as cluster_rolling
from kctl.deploy.process import Ended, identify
from kctl.errors import ConnectionRefused, InvalidFile, NotFound, OperationFailed, Refused, TimedOut
from kctl.model import Broker, ClusterState
from kctl.restart.control_hooks import HookControl
from kctl.restart.hooks import (
    DEFAULT_TIMEOUT_S,
    ZOOKEEPER_ACTS,
    check_brokers,
    check_servers,
    parse_hooks,
    read_hooks,
)
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.restart_run import RestartOptions
from kctl_testing import within

BROKERS = {1: Broker(1, "kafka-1.example", 9092, "r1"), 2: Broker(2, "kafka-2.example", 9093)}
FILE = """\
stop: [ssh, "{host}", sudo, systemctl, stop, kafka]
start: [ssh, '{host}', sudo, systemctl, start, kafka]
timeout: 90s
brokers:
  2:
    stop: [kafkactl, "stop-{id}", "--at={host}:{port}", 0, "{}", "{ x }"]
"""


def test_commands_for_all_and_for_one() -> None:
    hooks = parse_hooks(FILE, source="hooks.yaml")
    assert hooks.argv("stop", BROKERS[1]) == ("ssh", "kafka-1.example", "sudo", "systemctl", "stop", "kafka")
    assert hooks.argv("stop", BROKERS[2]) == ("kafkactl", "stop-2", "--at=kafka-2.example:9093", "0", "{}", "{ x }")
    assert hooks.argv("start", BROKERS[2])[1] == "kafka-2.example"
    assert hooks.timeout_s == 90
    assert parse_hooks("stop: [a]\n", source="f").timeout_s == DEFAULT_TIMEOUT_S


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f: has no commands"),
        ("- stop\n", "f: has no commands"),
        ("timeout: 2m\n", "f: has no commands"),
        ("stop: systemctl stop kafka\n", "f:1:1: stop must be a list of words, the command first"),
        ("stop: []\n", "f:1:1: stop must be a list of words"),
        ("start: [a]\nstpo: [a]\n", "f:2:1: unknown key 'stpo'"),
        ("stop: [a, [b]]\n", "f:1:11: a word of a command must be text"),
        ("stop: [a, true]\n", "f:1:11: a word of a command must be text"),
        ("stop: [a, 1.5]\n", "f:1:11: a word of a command must be text"),
        ("stop: [a, null]\n", "f:1:11: a word of a command must be text"),
        ('stop: ["", a]\n', "f:1:8: '' is not valid in a command"),
        ('stop: [a, "b\\0c"]\n', "is not valid in a command"),
        ('stop: [ssh, "{hots}"]\n', "f:1:13: unknown placeholder {hots}"),
        ('stop: ["{host}"]\n', "f:1:8: the name of the command cannot be a placeholder"),
        ("stop: [a]\ntimeout: soon\n", "f:2:1: 'soon' is not a duration"),
        ("stop: [a]\ntimeout: 10ms\n", "f:2:1: timeout must be at least 1s"),
        ("stop: [a]\nbrokers: [1]\n", "f:2:1: brokers must be a mapping of broker ids"),
        ("stop: [a]\nbrokers:\n  one: {stop: [a]}\n", "f:3:3: 'one' is not a broker id"),
        ("stop: [a]\nbrokers:\n  1: {}\n", "f:3:3: broker 1 has no commands"),
        ("stop: [a]\nbrokers:\n  1: {timeout: 1m}\n", "f:3:7: unknown key 'timeout'"),
        ("stop: [a]\nstop: [b]\n", "'stop' is there twice"),
        ("stop: &x [a]\nstart: *x\n", "the anchor &x is not supported"),
        ("zookeeper: [a]\n", "f:1:1: zookeeper has no commands"),
        ("zookeeper: {}\n", "f:1:1: zookeeper has no commands"),
        ("zookeeper: {stop: [a]}\n", "f:1:13: unknown key 'stop'"),
        ("zookeeper: {kill: a}\n", "f:1:13: kill must be a list of words"),
        ("zookeeper: {kill: [a, '{id}']}\n", "f:1:23: unknown placeholder {id}"),
        ("zookeeper: {servers: [a]}\n", 'servers must be a mapping of servers, "host:port"'),
        ("zookeeper:\n  servers:\n    'zk1:x': {kill: [a]}\n", "f:3:5: 'x' in 'zk1:x' is not a port"),
        ("zookeeper:\n  servers:\n    zk1: {}\n", "f:3:5: ZooKeeper zk1:2181 has no commands"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_hooks(text, source="f")
    assert says in caught.value.message


ZOOKEEPER = """\
zookeeper:
  kill: [ls, "{host}"]
  start: [ls, "{host}:{port}"]
  servers: {zk2: {kill: [no-such-command-anywhere]}}
"""
ONE, TWO = Address("zk1", 2181), Address("zk2", 2181)


def test_commands_for_zookeepers() -> None:
    hooks = parse_hooks(ZOOKEEPER, source="f").zookeeper
    assert hooks is not None
    assert [hooks.argv(act, ONE) for act in ZOOKEEPER_ACTS] == [("ls", "zk1"), ("ls", "zk1:2181")]
    assert [hooks.argv(act, TWO)[0] for act in ZOOKEEPER_ACTS] == ["no-such-command-anywhere", "ls"]
    with pytest.raises(NotFound, match="commands for ZooKeeper zk2:2181, which is not in the ensemble"):
        check_servers(hooks, [ONE])
    with pytest.raises(NotFound, match="program no-such-command-anywhere does not exist"):
        check_servers(hooks, [ONE, TWO])
    with pytest.raises(Refused, match="reports host '-oProxyCommand=x', which is not safe in a command"):
        hooks.argv("kill", Address("-oProxyCommand=x", 2181))
    lacking = parse_hooks("zookeeper: {kill: [ls]}\n", source="f").zookeeper
    assert lacking is not None
    with pytest.raises(Refused, match="f has no command to start ZooKeeper zk1:2181"):
        check_servers(lacking, [ONE])
    assert parse_hooks(FILE, source="f").zookeeper is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_hooks(tmp_path / "hooks.yaml")


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "a b", "a;b", "$(x)", "a\nb", "\u202ea"])
def test_what_a_broker_tells_is_no_option_and_no_second_word(host: str) -> None:
    hooks = parse_hooks('stop: [ssh, "{host}"]\n', source="f")
    with pytest.raises(Refused, match="not safe in a command"):
        hooks.argv("stop", Broker(1, host, 9092))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stop: [ls]\n", "no command to start broker 1"),
        ('stop: [ls, "{rack}"]\nstart: [ls]\n', "uses {rack}, but broker 2 has no rack"),
        ("stop: [ls]\nstart: [ls]\nbrokers: {7: {stop: [ls]}}\n", "commands for broker 7"),
        ("stop: [ls]\nstart: [no-such-command]\n", "program no-such-command"),
    ],
)
def test_what_is_lacking_is_found_before_anything_is_done(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        check_brokers(parse_hooks(text, source="f"), BROKERS, ("stop", "start"))


def test_commands_for_brokers_that_are_not_restarted_now_are_no_mistake() -> None:
    hooks = parse_hooks("stop: [ls]\nstart: [ls]\nbrokers: {7: {stop: [ls]}}\n", source="f")
    check_brokers(hooks, BROKERS, ("stop", "start"), existing=[1, 2, 7])
    with pytest.raises(NotFound, match="commands for broker 7") as caught:
        check_brokers(hooks, {2: BROKERS[2]}, ("stop", "start"), existing=[1, 2])
    assert caught.value.hint == "brokers of the cluster: 1, 2"


class _Cluster:
    """Brokers 1 and 2 are up, 7 is down; or nobody answers."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent

    def client(self) -> _Cluster:
        return self

    def metadata(self, _topics: object) -> ClusterState:
        if self.silent:
            raise ConnectionRefused("nobody answers")
        return ClusterState("id", 1, BROKERS, {})

    def down(self) -> dict[int, Broker]:
        return {7: Broker(7, "", -1)}


@pytest.mark.parametrize(
    ("ids", "silent", "refused"), [("7", False, None), ("8", False, "broker 8"), ("8", True, None)]
)
def test_which_brokers_there_are_is_asked_of_the_cluster(ids: str, silent: bool, refused: str | None) -> None:
    """Not of those that --brokers chose, nor of an unfinished run."""
    hooks = parse_hooks(f"stop: [ls]\nstart: [ls]\nbrokers: {{{ids}: {{stop: [ls]}}}}\n", source="f")
    wanted = cluster_rolling.RollingRequest(None, Path("f"), frozenset({2}), RestartOptions())
    with pytest.raises(NotFound, match=refused) if refused else nullcontext():
        cluster_rolling._control(wanted, hooks, {2: BROKERS[2]}, cast(LiveCluster, _Cluster(silent=silent)))


def test_commands_are_run_with_their_limit() -> None:
    ran: list[tuple[tuple[str, ...], float]] = []

    def run(argv: tuple[str, ...], *, timeout_s: float, **_others: Any) -> Ended:
        ran.append((argv, timeout_s))
        return Ended(0, [])

    control = HookControl(parse_hooks(FILE, source="f"), BROKERS, run=run)
    control.stop(1, timeout_s=600)
    control.start(2, timeout_s=5)
    assert [limit for _, limit in ran] == [90, 5]
    assert ran[1][0][:2] == ("ssh", "kafka-2.example")
    assert list(control.acts) == ["stop", "start"]
    with pytest.raises(Refused, match="no command to kill broker 1"):
        control.kill(1)
    with pytest.raises(NotFound, match="no broker 9"):
        control.stop(9, timeout_s=1)


def test_a_command_that_fails_is_told_with_its_last_lines() -> None:
    script = "import sys; sys.stderr.write('one\\ntwo\\x1b[2J\\n'); print('out'); sys.exit(3)"
    hooks = parse_hooks(f"stop: {json.dumps([sys.executable, '-c', script])}\n", source="f")
    with pytest.raises(OperationFailed) as caught:
        HookControl(hooks, BROKERS).stop(1, timeout_s=30)
    assert "the command to stop broker 1 (python" in caught.value.message
    assert "exit code 3" in caught.value.message
    assert caught.value.hint == "its output:\none\ntwo\\x1b[2J\nout"


def test_a_command_that_hangs_is_killed_and_told_with_what_it_said(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path / 'pid'}; echo Password:; sleep 600"
    hooks = parse_hooks(f"stop: {json.dumps(['sh', '-c', script])}\ntimeout: 1s\n", source="f")
    with pytest.raises(TimedOut, match="did not end within 1 s and was killed") as caught:
        HookControl(hooks, BROKERS).stop(1, timeout_s=30)
    assert str(caught.value.hint).startswith("its output:\nPassword:\nraise `timeout` in f")
    assert identify(int((tmp_path / "pid").read_text())) is None
    with pytest.raises(TimedOut) as caught:
        HookControl(parse_hooks("stop: [sleep, 600]\n", source="f"), BROKERS).stop(1, timeout_s=0.5)
    assert "raise --broker-timeout" in str(caught.value.hint)


def test_of_much_output_the_last_lines_are_told() -> None:
    """100 MB, and then why it failed: that is at the end."""
    script = "head -c 100000000 /dev/zero | tr '\\0' 'x' | fold -w 2000; echo; echo 'no space left' >&2; exit 1"
    hooks = parse_hooks(f"stop: {json.dumps(['sh', '-c', script])}\n", source="f")
    with pytest.raises(OperationFailed) as caught:
        HookControl(hooks, BROKERS).stop(1, timeout_s=within(60))
    lines = str(caught.value.hint).splitlines()
    assert (len(lines), lines[-1]) == (6, "no space left")
    assert max(map(len, lines)) <= 300


def test_a_secret_goes_by_the_environment_and_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "hunter2")
    script = 'test "$BROKER_PASSWORD" = hunter2 && ! read -r answer && exit 7'  # and nobody answers a question
    hooks = parse_hooks(f"stop: {json.dumps(['sh', '-c', script, 'own-password'])}\n", source="f")
    with pytest.raises(OperationFailed, match="exit code 7") as caught:
        HookControl(hooks, BROKERS).stop(1, timeout_s=30)
    assert "own-password" not in json.dumps(caught.value.details)
    assert caught.value.details == {"broker": 1, "act": "stop", "returncode": 7}
    assert caught.value.hint == "it printed nothing"


def test_a_broker_that_is_down_needs_commands_without_its_address() -> None:
    down = Broker(3, "", -1, None)
    able = parse_hooks("stop: [systemctl, stop, 'kafka@{id}']\nstart: [systemctl, start, 'kafka@{id}']\n", source="f")
    assert able.can_run(down, ("stop", "start"))
    assert able.argv("start", down) == ("systemctl", "start", "kafka@3")
    assert not able.can_run(down, ["kill"])
    for name in ("host", "port", "rack"):
        unable = parse_hooks(f"stop: [ls]\nstart: [ssh, '{{{name}}}']\n", source="f")
        assert not unable.can_run(down, ("stop", "start"))
        with pytest.raises(Refused, match="broker 3 is down, so its address is unknown"):
            unable.argv("start", down)


def test_a_command_that_is_not_there() -> None:
    hooks = parse_hooks("stop: [no-such-command-anywhere]\n", source="f")
    with pytest.raises(NotFound, match="cannot run no-such-command-anywhere"):
        HookControl(hooks, BROKERS).stop(1, timeout_s=30)
