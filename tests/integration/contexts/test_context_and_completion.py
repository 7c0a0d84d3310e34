"""kctl context and kctl completion, by the installed script; completion in a real bash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from in_process import InProcess
from kctl_testing import SCRIPT, Kctl, TestCluster, within


@pytest.fixture
def lone_kctl(tmp_path: Path) -> Kctl:
    """kctl with an empty HOME."""
    home = tmp_path / "home"
    home.mkdir()
    return Kctl(home)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file that two `context add` write."""
    kctl = Kctl(tmp_path_factory.mktemp("adding"))
    kctl.ok("context", "add", "dev", "--bootstrap-server", "127.0.0.1:1,[::1]:2", "--zookeeper", "z:2181/dev")
    kctl.ok(
        "context", "add", "prod", "--bootstrap-server", "kafka1:9093", "--security-protocol", "sasl_ssl",
        "--sasl-mechanism", "scram-sha-512", "--sasl-username", "ops", "--sasl-password-env", "PW", "--protected",
        "--ssl-cafile", "ca.pem",
    )  # fmt: skip
    return (kctl.home / CONFIG).read_bytes()


@pytest.fixture
def two(lone_kctl: Kctl, config: bytes) -> Kctl:
    file = lone_kctl.home / CONFIG
    file.parent.mkdir(parents=True)
    file.write_bytes(config)
    return lone_kctl


CONFIG = Path(".config/kctl/config.yaml")
KEYS = {
    "name", "current", "bootstrap_servers", "zookeeper", "protected", "cluster_dir", "security", "zookeeper_security",
    "cluster_id",
}  # fmt: skip


def test_list_and_show(two: Kctl) -> None:
    rows = two.json("context", "list")
    assert [(row["name"], row["current"], row["protected"]) for row in rows] == [
        ("dev", True, False),
        ("prod", False, True),
    ]
    assert all(set(row) == KEYS for row in rows)
    assert two.json("context", "show")["bootstrap_servers"] == ["127.0.0.1:1", "[::1]:2"]
    prod = two.json("context", "show", "prod")
    assert prod["security"]["protocol"] == "SASL_SSL"
    assert prod["security"]["ssl_cafile"] == str(Path("ca.pem").absolute())
    assert "sasl_password" not in prod["security"]
    assert two.json("context", "show", "--context", "prod")["name"] == "prod"
    assert two.with_environment(KCTL_CONTEXT="prod").json("context", "show")["name"] == "prod"
    text = two.ok("context", "show", "prod").out
    assert "sasl_password_env" in text
    assert "ssl_key_password_env" not in text  # what is not set is not shown
    assert two.ok("context", "list").out.splitlines()[1].startswith("*  ")


def test_adding_twice_is_harmless_and_nothing_is_overwritten_unasked(two: Kctl) -> None:
    same = ("context", "add", "dev", "--bootstrap-server", "127.0.0.1:1,[::1]:2", "--zookeeper", "z:2181/dev")
    two.ok(*same)
    other = two("context", "add", "dev", "--bootstrap-server", "h:1")
    assert (other.code, "--replace" in other.err) == (4, True)
    assert two.json("context", "show", "dev")["zookeeper"] == "z:2181/dev"
    two.ok("context", "add", "dev", "--bootstrap-server", "h:1", "--replace", "--dry-run")
    assert two.json("context", "show", "dev")["zookeeper"] == "z:2181/dev"
    two.ok("context", "add", "dev", "--bootstrap-server", "h:1", "--replace")
    assert two.json("context", "show", "dev")["bootstrap_servers"] == ["h:1"]


def test_use_and_remove(two: Kctl) -> None:
    two.ok("context", "use", "prod", "--dry-run")
    assert two.json("context", "show")["name"] == "dev"
    assert two.json("context", "use", "prod")["current"] is True
    assert two.json("context", "show")["name"] == "prod"
    warned = two.with_environment(KCTL_CONTEXT="dev").ok("context", "use", "prod")
    assert "commands use dev: KCTL_CONTEXT=dev takes precedence" in warned.err
    assert two.with_environment(KCTL_CONTEXT="dev").json("context", "use", "prod")["current"] is False
    gone = two.with_environment(KCTL_CONTEXT="gone").ok("context", "use", "prod")
    assert "there is no context gone: KCTL_CONTEXT=gone takes precedence" in gone.err
    asked = two("context", "remove", "prod")
    assert (asked.code, "--yes" in asked.err) == (4, True)
    two.ok("context", "remove", "prod", "--yes")
    assert two("context", "show").code == 2  # the one before is not chosen by itself
    two.ok("context", "use", "dev")
    assert [row["name"] for row in two.json("context", "list")] == ["dev"]


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["show", "nope"], 4, "existing contexts: dev, prod"),
        (["use", "nope"], 4, "existing contexts: dev, prod"),
        (["remove", "nope", "--yes"], 4, "'nope'"),
        (["add", "x"], 2, "--bootstrap-server"),
        (["add", "a b", "--bootstrap-server", "h:1"], 2, "context name"),
        (["add", "x", "--bootstrap-server", "h:0"], 2, "port"),
        (["add", "x", "--bootstrap-server", "h:1", "--zookeeper", "z/a b"], 2, "chroot"),
        (["add", "x", "--bootstrap-server", "h:1", "--security-protocol", "tls"], 2, "SASL_SSL"),
        (["add", "x", "--bootstrap-server", "h:1", "--ssl-cafile", "x.pem"], 2, "no effect"),
        (["add", "x", "--bootstrap-server", "h:1", "--command-config", "x"], 2, "--command-config"),
        (["add", "x", "--bootstrap-server", "h:1", "--sasl-password", "hunter2"], 2, "No such option"),
    ],
)
def test_refused(two: Kctl, argv: list[str], code: int, says: str) -> None:
    before = (two.home / CONFIG).read_bytes()
    result = two("context", *argv)
    assert (result.code, result.out) == (code, "")
    assert says in result.err, str(result)
    assert (two.home / CONFIG).read_bytes() == before


def test_nothing_chosen(lone_kctl: Kctl) -> None:
    assert lone_kctl.json("context", "list") == []
    result = lone_kctl("topic", "list", "-o", "json")
    assert (result.code, json.loads(result.err)["code"]) == (2, "usage")
    assert "--bootstrap-server" in result.err


def test_a_broken_file_is_told_with_its_line(two: Kctl) -> None:
    file = two.home / CONFIG
    file.write_text("current_context: dev\ncontexts: {dev: &x {bootstrap_servers: [h]}}\n")
    for command in (["topic", "list"], ["context", "list"], ["context", "use", "dev"]):
        result = two(*command)
        assert (result.code, f"{file}:2:17: " in result.err) == (2, True), str(result)


# --- completion ---------------------------------------------------------------------------------------------------


def _complete(kctl: Kctl, *words: str) -> list[str]:
    """What bash would offer for the last of `words`, after sourcing the script that kctl prints."""
    program = """
        source <(kctl completion bash) || exit 9
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        handler=$(complete -p kctl | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        "$handler" kctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\\n' "${#COMPREPLY[@]}" "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", *words],
        env={**kctl.environment, "PATH": f"{SCRIPT.parent}{os.pathsep}{kctl.environment['PATH']}"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    count, *offered = done.stdout.split()
    assert int(count) == len(offered), "an empty word is written as a space"
    return offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["kctl", "to"], ["topic"]),
        (["kctl", "context", ""], ["list", "show", "test", "use", "add", "import", "remove"]),
        (["kctl", "-o", "json", "context", "s"], ["show"]),
        (["kctl", "context", "add", "--sasl-p"], ["--sasl-password-env", "--sasl-password-file"]),
        (["kctl", "context", "use", ""], ["dev", "prod"]),
        (["kctl", "topic", "list", "--context", "p"], ["prod"]),
        (["kctl", "topic", "list", "-o", "j"], ["json"]),
        (["kctl", "completion", ""], ["bash", "zsh", "fish"]),
        (["kctl", "topic", "apply", "-f", "CHANGE"], []),  # files are the shell's business
        (["kctl", "config", "set", "user/a", "prod"], ["producer_byte_rate="]),
        (["kctl", "config", "unset", "ips", ""], ["connection_creation_rate"]),
    ],
)
def test_bash(two: Kctl, words: list[str], offered: list[str]) -> None:
    assert _complete(two, *words) == offered


def test_bash_offers_every_group(two: Kctl) -> None:
    from kctl.commands.app import GROUPS

    assert _complete(two, "kctl", "") == list(GROUPS)


def test_completion_survives_a_broken_config(two: Kctl) -> None:
    (two.home / CONFIG).write_text("[")
    assert _complete(two, "kctl", "context", "use", "") == []


def _offered(kctl: Kctl, line: str) -> list[str]:
    """What kctl answers to all three scripts."""
    asked = kctl.with_environment(_KCTL_COMPLETE="complete_line", _KCTL_LINE=line).ok()
    assert asked.err == ""
    return [row.partition("\t")[0] for row in asked.out.splitlines() if row]


def test_what_all_scripts_ask(two: Kctl) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_KCTL_COMPLETE=complete_line _KCTL_LINE=" in two.ok("completion", shell).out
    asked = two.with_environment(_KCTL_COMPLETE="complete_line", _KCTL_LINE="kctl context sh").ok()
    assert asked.out == "show\tShow a context: servers and security...\n"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kctl 'context' use ", ["dev", "prod"]),
        ("kctl --bootstrap-server h:1 -o json context use p", ["prod"]),
        ('kctl context use "p', ["prod"]),
        ("kctl topic apply -f CHANGE", []),  # files are the shell's business
        ("kctl context add x --security-protocol s", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
        ("kctl group list --state e", ["Empty"]),
        ("kctl acl list --permission ", ["allow", "deny"]),
        ("kctl quota set --ip 10.0.0.1 ", ["connection_creation_rate="]),
        ("kctl quota unset --user u prod", ["producer_byte_rate"]),
        ("kctl user add x --mechanism sc", ["SCRAM-SHA-256", "SCRAM-SHA-512"]),
        ("kctl broker loggers set kafka.x=d", ["kafka.x=DEBUG"]),
    ],
)
def test_what_is_offered(two: Kctl, line: str, offered: list[str]) -> None:
    assert _offered(InProcess(two.home, two.environment), line) == offered


def test_unknown_shell(two: Kctl) -> None:
    result = two("completion", "tcsh")
    assert (result.code, "bash, zsh, fish" in result.err) == (2, True)


def test_completion_imports_no_client(two: Kctl) -> None:
    code = "import sys; from kctl.__main__ import main; main(); print(*sys.modules)"
    environment = {
        **two.environment,
        "_KCTL_COMPLETE": "complete_line",
        "_KCTL_LINE": "kctl context use ",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert {"dev", "prod"} <= set(done.stdout.split())
    assert not {"kafka", "kazoo", "rich"} & set(done.stdout.split())


# --- completion of a cluster's names ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def names(kctl: Kctl, cluster: TestCluster) -> Iterator[Kctl]:
    """The cluster has two topics, and two groups: one of them has a name that a shell must not see."""
    from kafka import KafkaConsumer
    from kafka.structs import OffsetAndMetadata, TopicPartition

    topics = ("complete-orders", "complete-orders-v2")
    for topic in topics:
        kctl.ok("topic", "create", topic)
    for group in ("complete-billing", HOSTILE):
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap.split(","), group_id=group)
        consumer.commit({TopicPartition(topics[0], 0): OffsetAndMetadata(0, "", -1)})
        consumer.close()
    yield kctl
    for topic in topics:
        kctl.ok("topic", "delete", topic, "--yes")


HOSTILE = "complete-$(touch /tmp/kctl-hostile)"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["topic", "describe", "complete-"], ["complete-orders", "complete-orders-v2"]),
        (["topic", "delete", "--dry-run", "complete-orders-"], ["complete-orders-v2"]),
        (["topic", "create", "complete-"], []),  # that name is new
        (["consume", "complete-orders-"], ["complete-orders-v2"]),
        (["produce", "complete-orders-"], ["complete-orders-v2"]),
        (["group", "describe", "complete-"], ["complete-billing"]),
        (["lag", "complete-"], ["complete-billing"]),
        (["topic", "create", "x", "--config", "retention.m"], ["retention.ms="]),
        (["topic", "create", "x", "--config", "cleanup.policy=c"], ["compact", "compact,delete"]),
        (["config", "get", "topic/complete-orders-"], ["topic/complete-orders-v2"]),
        (["--timeout", "9s", "--zookeeper", "z:2181/x", "group", "describe", "complete-"], ["complete-billing"]),
    ],
)
def test_bash_offers_what_the_cluster_has(names: Kctl, words: list[str], offered: list[str]) -> None:
    assert _complete(names, "kctl", *words) == offered
    assert not Path("/tmp/kctl-hostile").exists()  # what the hostile name would make


def test_a_hostile_name_reaches_no_shell(names: Kctl) -> None:
    assert _offered(names, "kctl group describe compl") == ["complete-billing"]


def test_names_come_from_the_cache_within_300_ms(names: Kctl, cluster: TestCluster) -> None:
    environment = {"_KCTL_COMPLETE": "complete_line", "_KCTL_LINE": "kctl topic describe complete-"}
    asked = names.with_environment(**environment)
    asked.ok()
    assert min(asked.ok().seconds for _ in range(5)) < within(0.3)
    folder = Path(names.environment["XDG_CACHE_HOME"]) / "kctl" / "names"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    # The files do not say whose names they are, and hold no more than names and times.
    kept = json.loads(max(folder.glob("topics-*"), key=lambda path: path.stat().st_mtime).read_text())
    assert list(kept) == ["at", "tried", "names"]
    assert cluster.name not in str(sorted(folder.iterdir()))


@pytest.mark.parametrize("server", ["127.0.0.1:1", "nosuchhost.invalid:9092", "10.255.255.1:9092", "not an address"])
def test_completion_is_silent_and_quick_without_a_cluster(lone_kctl: Kctl, server: str) -> None:
    asked = lone_kctl.with_environment(
        _KCTL_COMPLETE="complete_line", _KCTL_LINE=f"kctl --bootstrap-server '{server}' topic describe "
    )
    result = asked.ok()
    assert result.err == ""
    assert result.seconds < within(3)
    again = asked.ok()
    assert again.out == result.out


def test_warm_completion_imports_no_client(names: Kctl) -> None:
    code = "import sys; from kctl.__main__ import main; main(); print(*sys.modules)"
    environment = {
        **names.environment,
        "_KCTL_COMPLETE": "complete_line",
        "_KCTL_LINE": "kctl group describe complete-",
    }
    for _ in ("cold", "warm"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
    assert "complete-billing" in done.stdout.split()
    assert not {"kafka", "kazoo", "rich"} & set(done.stdout.split())


# --- import ---------------------------------------------------------------------------------------------------------


def test_import(lone_kctl: Kctl, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=kafka1:9093\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nacks=all\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ops" password="correct-horse";\n'
    )
    argv = ("context", "import", str(file), "--name", "prod")
    planned = lone_kctl.ok(*argv, "--dry-run")
    assert "ignored settings" in planned.err
    assert "acks" in planned.err
    assert not (lone_kctl.home / ".config").exists()
    done = lone_kctl.ok(*argv, "-o", "json")
    (row,) = json.loads(done.out)
    assert list(row) == ["name", "action", "current", "entry", "secret_files", "left_out", "before", "copied_from"]
    assert row["before"] is None
    secret = lone_kctl.home / ".config/kctl/secrets/prod.sasl-password"
    assert row["secret_files"] == [str(secret)]
    assert secret.stat().st_mode & 0o777 == 0o600
    for result in (planned, done, lone_kctl.ok("context", "show", "prod"), lone_kctl.ok(*argv)):
        assert "correct-horse" not in result.out + result.err


def test_replacing_keeps_a_context_protected(two: Kctl, tmp_path: Path) -> None:
    """prod is protected; only --no-protected says otherwise, and what changes is shown."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=kafka9:9092\n")
    replacing = ("context", "import", str(file), "--name", "prod", "--replace")
    planned = two.ok(*replacing, "--dry-run")
    assert "bootstrap_servers: kafka1:9093 → kafka9:9092" in planned.err
    (row,) = two.json(*replacing)
    assert (row["before"]["protected"], row["entry"]["protected"]) == (True, True)
    added = two.json("context", "add", "prod", "--bootstrap-server", "h:1", "--replace")
    assert added["protected"]
    assert "protected: yes → no" in two.ok(*replacing, "--no-protected").err
    assert not two.json("context", "show", "prod")["protected"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["client.properties"], "--name"),
        (["config.yml", "--name", "x"], "--name does not apply"),
        (["client.properties", "--name", "x", "--only", "y"], "--only does not apply"),
        (["client.json", "--name", "x"], "--format"),
        (["nosuch.properties", "--name", "x"], "cannot read"),
        (["client.properties", "--name", "x", "--format", "ini"], "properties, kafkactl"),
    ],
)
def test_import_refuses(lone_kctl: Kctl, argv: list[str], says: str) -> None:
    result = lone_kctl("context", "import", *argv)
    assert (result.code, says in result.err) == (2, True), str(result)


# --- is what a context says true ------------------------------------------------------------------------------------


def test_context_test(kctl: Kctl, cluster: TestCluster) -> None:
    found = kctl.json("context", "test", cluster.name)
    assert list(found) == [
        "name", "cluster_id", "controller_id", "brokers", "healthy", "principal", "servers", "rights",
    ]  # fmt: skip
    assert found["principal"] == "User:ANONYMOUS"
    assert list(found["rights"][0]) == ["resource", "operation", "result", "detail"]
    assert {right["result"] for right in found["rights"]} <= {"ok", "unknown"}  # without an authorizer
    assert found["rights"][-1]["detail"] == "no authorizer: everyone may do everything"
    assert (found["healthy"], found["brokers"]) == (True, list(cluster.broker_ids))
    assert [server["role"] for server in found["servers"]] == ["bootstrap"] * 3 + ["zookeeper"]
    assert {server["cluster_id"] for server in found["servers"]} == {found["cluster_id"]}
    lines = kctl.ok("context", "test").out.splitlines()
    assert [line.split()[-1] for line in lines[:5]] == ["PROBLEM", "-", "-", "-", "-"]
    assert lines[6] == "logged in as User:ANONYMOUS"


def test_context_test_finds_what_is_wrong(kctl: Kctl, cluster: TestCluster) -> None:
    one = cluster.bootstrap.split(",")[0]
    only_one = kctl.json("context", "test", "--bootstrap-server", one)
    assert [server["role"] for server in only_one["servers"]] == ["bootstrap", "broker", "broker"]

    result = kctl("context", "test", "--bootstrap-server", f"{one},127.0.0.1:1", "-o", "json")
    assert result.code == 1, str(result)
    (dead,) = (server for server in json.loads(result.out)["servers"] if server["problem"])
    assert (dead["server"], "refused" in dead["problem"]) == ("127.0.0.1:1", True)

    servers = cluster.zookeeper.split("/")[0]
    nosuch = kctl("context", "test", "--bootstrap-server", one, "--zookeeper", f"{servers}/nosuch")
    assert nosuch.code == 1, str(nosuch)
    assert "has no chroot /nosuch" in nosuch.err, str(nosuch)
    empty = kctl("context", "test", "--zookeeper", f"{servers}/zookeeper")
    assert (empty.code, "check the chroot" in empty.err) == (1, True), str(empty)


def test_context_test_tells_clusters_apart(kctl: Kctl, cluster: TestCluster, own_kctl: Kctl) -> None:
    """A context that mixes two clusters: the brokers of one, the ZooKeeper of another."""
    own_kctl.ok("cluster", "create", "other", "--use", "--layout", "single", "--heap", "256m", timeout=120)
    try:
        other = own_kctl.json("context", "show", "other")["zookeeper"]
        mixed = kctl("context", "test", "--bootstrap-server", cluster.bootstrap, "--zookeeper", other)
        assert (mixed.code, "belongs to another cluster" in mixed.err) == (1, True), str(mixed)
    finally:
        own_kctl.ok("cluster", "destroy", "other", "--yes", "--confirm-cluster", "other")


def test_no_context_is_current_after_it_is_removed(two: Kctl) -> None:
    two.ok("context", "use", "prod")
    assert two.json("context", "use", "-")["name"] == "dev"
    removed = two.ok("context", "remove", "dev", "--yes")
    assert "no context is current now" in removed.err
    assert "context dev was removed" in removed.err
    unchosen = two("topic", "list")
    assert (unchosen.code, "kctl context use NAME" in unchosen.err, "existing contexts: prod" in unchosen.err) == (
        2,
        True,
        True,
    )
    assert two.json("context", "use", "-")["name"] == "prod"
    two.ok("context", "remove", "prod", "--yes")
    assert two("context", "use", "-").code == 2


def test_no_context_is_current_after_its_cluster_is_destroyed(two: Kctl, shared: dict[str, str]) -> None:
    kctl = two.with_environment(**shared)
    kctl.ok("cluster", "create", "passing", "--use", "--layout", "single", "--no-start")
    assert kctl.json("context", "show")["name"] == "passing"
    other = kctl.ok("cluster", "create", "quiet", "--layout", "single", "--no-start")  # without a terminal, or --use
    assert "the current context is still passing" in other.err
    assert kctl.json("context", "show")["name"] == "passing"
    kctl.ok("cluster", "destroy", "quiet", "--yes")
    assert kctl.json("context", "show")["name"] == "passing"
    overruled = kctl.with_environment(KCTL_CONTEXT="prod")
    destroyed = overruled("cluster", "destroy", "passing", "--yes", "-o", "json")
    assert json.loads(destroyed.out)["current_context"] is None
    assert "no context is current now" in destroyed.err
    assert "KCTL_CONTEXT=prod takes precedence" in destroyed.err
    assert kctl("topic", "delete", "orders", "--yes").code == 2
    assert kctl("context", "show").code == 2
