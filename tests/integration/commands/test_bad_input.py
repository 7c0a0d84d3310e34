"""Bad input and bad days, one row each: exit code, time until the answer, what is said, and nothing half-done.

TLS, certificates and passwords have their rows in protocol/test_security.py, broken clusters in test_bad_day.py.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kctl.deploy.runtime.java import bundled_java_home
from kctl_testing import SCRIPT, Kctl, Result, TestCluster, closed_port, within

CONNECTION_S = 5.0


@dataclass(frozen=True)
class Row:
    """argv may hold {zookeeper_port}, {silent}, {closed}, {web}, {bootstrap}, {name}, {folder} and {topic}."""

    name: str
    argv: str
    code: int
    says: str
    within_s: float = 15.0
    stdin: str = ""
    output: bool = False  # what was checked is on stdout


ROWS = [
    # --- cannot reach
    Row("unreachable", "topic list --bootstrap-server 127.0.0.1:{closed}", 3, "refused", CONNECTION_S),
    Row("no such host", "topic list --bootstrap-server nosuch.invalid:9092", 3, "nosuch.invalid", CONNECTION_S),
    Row("never answers", "topic list --bootstrap-server 127.0.0.1:{silent}", 3, "{silent}", CONNECTION_S),
    Row("ZooKeeper's port", "topic list --bootstrap-server 127.0.0.1:{zookeeper_port}", 3, "ZooKeeper", CONNECTION_S),
    Row("a web server's port", "topic list --bootstrap-server 127.0.0.1:{web}", 3, "{web}", CONNECTION_S),
    Row(
        "wrong chroot",
        "context test --zookeeper 127.0.0.1:{zookeeper_port}/nosuch",
        1,
        "no chroot /nosuch",
        CONNECTION_S,
        output=True,
    ),
    Row(
        "a broker's port for ZooKeeper",
        "context test --zookeeper {bootstrap}",
        1,
        "a Kafka broker's port",
        CONNECTION_S,
        output=True,
    ),
    Row("TLS to a plaintext port", "topic list --context tls", 3, "TLS", CONNECTION_S),
    Row("nothing chosen", "topic list --context none", 4, "none", 2),
    Row("unusable address", "topic list --bootstrap-server 127.0.0.1:99999", 2, "port", 2),
    Row("unusable host", "topic list --bootstrap-server 'a b:9092'", 2, "a b", 2),
    # --- does not exist
    Row("unknown command", "topik list", 2, "topic", 2),
    Row("unknown option", "topic list --nosuch", 2, "nosuch", 2),
    Row("unknown format", "topic list -o xml", 2, "xml", 2),
    Row("unknown context", "topic list --context nosuch", 4, "nosuch", 2),
    Row("unknown topic, describe", "topic describe nosuch", 4, "nosuch"),
    Row("unknown topic, delete", "topic delete nosuch --yes", 4, "nosuch"),
    Row("unknown topic, produce", "produce nosuch", 4, "nosuch", stdin="x\n"),
    Row("unknown topic, consume", "consume nosuch --exit-eof", 4, "nosuch"),
    Row("unknown group, describe", "group describe nosuch", 4, "nosuch"),
    Row("unknown group, lag", "lag nosuch", 4, "nosuch"),
    Row("unknown cluster", "cluster status nosuch", 4, "nosuch", 2),
    Row("unknown cluster, destroy", "cluster destroy nosuch --yes", 4, "nosuch", 2),
    Row("unknown version of Kafka", "runtime verify --kafka-version 9.9.9", 4, "9.9.9"),
    # --- cannot be
    Row("more replicas than brokers", "topic create many --replication-factor 4", 4, "available brokers: 3"),
    Row("no partitions", "topic create none --partitions 0", 2, "partitions", 2),
    Row("topic name with a slash", "topic create a/b", 2, "a/b", 2),
    Row("topic name of dots", "topic create ..", 2, r"'\.\.'", 2),
    Row("topic name too long", f"topic create {'x' * 250}", 2, "249", 2),
    Row("topic exists", "topic create {topic}", 4, "exists"),
    Row("unknown topic config", "topic create odd --config retention.mz=1", 4, "retention.mz"),
    Row("impossible topic config", "topic create odd --config retention.ms=soon", 4, "retention.ms"),
    Row("config without value", "topic create odd --config retention.ms", 2, "retention.ms", 2),
    Row("partition out of range", "produce {topic} --partition 9", 4, "9", stdin="x\n"),
    Row("cluster name with a slash", "cluster create ../x --layout single", 2, "../x", 2),
    Row("unknown layout", "cluster create c --layout heap", 2, "heap", 2),
    Row(
        "unknown broker config",
        "cluster create c --layout single --config log.retention.mz=1",
        2,
        "log.retention.ms",
        3,
    ),
    Row("impossible broker config", "cluster create c --layout single --config num.io.threads=many", 2, "num.io", 3),
    Row("config that kctl owns", "cluster create c --layout single --config broker.id=7", 2, "broker.id", 3),
    Row("unwritable folder", "cluster create c --layout single --dir /sys/kctl", 5, "/sys/kctl", 5),
    # --- nobody to ask
    Row("topic delete, no terminal", "topic delete {topic}", 4, "--yes"),
    Row("cluster destroy, no terminal", "cluster destroy {name}", 4, "--confirm-cluster|--yes"),
    Row("cluster kill, no terminal", "cluster kill {name} 1", 4, "--yes"),
    Row("cluster stop, no terminal", "cluster stop {name}", 4, "--yes"),
]


@pytest.fixture(scope="module")
def places(kctl: Kctl, cluster: TestCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses that do not answer as a broker does, and names that exist."""
    kctl.ok("topic", "create", "bad-input", "--partitions", "2")
    kctl.ok("context", "add", "tls", "--bootstrap-server", cluster.bootstrap, "--security-protocol", "SSL")
    kctl.ok("context", "use", cluster.name)
    with _listening() as silent, _web_server() as web:
        yield {
            "silent": str(silent),
            "web": str(web),
            "closed": str(closed_port()),
            "zookeeper_port": cluster.zookeeper.split("/")[0].split(",")[0].rsplit(":", 1)[1],
            "bootstrap": cluster.bootstrap,
            "name": cluster.name,
            "topic": "bad-input",
            "folder": str(tmp_path_factory.mktemp("folder")),
        }


@contextmanager
def _listening() -> Iterator[int]:
    """A port that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def _web_server() -> Iterator[int]:
    import http.server
    import threading

    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _words(argv: str, places: dict[str, str]) -> list[str]:
    return [word.format(**places) if "{" in word else word for word in shlex.split(argv)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Row, kctl: Kctl, places: dict[str, str]) -> None:
    result = kctl(*_words(row.argv, places), stdin=row.stdin, timeout=60)
    assert result.code == row.code, str(result)
    says = row.says.format(**places) if row.says.startswith("{") else row.says
    assert re.search(says, result.err, re.IGNORECASE), str(result)
    assert re.search("^error: ", result.err, re.MULTILINE), str(result)
    assert "Traceback" not in result.err + result.out, str(result)
    assert result.seconds <= within(row.within_s), str(result)
    assert bool(result.out) == row.output, "an error belongs on stderr"


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.name in {"unreachable", "unknown topic, describe", "unknown option"}]
)
def test_errors_are_json_for_programs(row: Row, kctl: Kctl, places: dict[str, str]) -> None:
    result = kctl(*_words(row.argv, places), "-o", "json")
    body = json.loads(result.err.splitlines()[-1])
    assert result.code == row.code == body["exit_code"]
    assert {"code", "message", "hint"} <= set(body)


def test_nothing_was_half_done(kctl: Kctl, places: dict[str, str]) -> None:
    names = {row["topic"] for row in kctl.json("topic", "list")}
    assert not names & {"many", "none", "odd", "a/b", ".."}
    assert [row["name"] for row in kctl.json("cluster", "list")] in ([], [places["name"]])
    assert all(row["state"] == "running" for row in kctl.json("cluster", "list"))


# --- the config file -----------------------------------------------------------------------------------------------

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
FILES: dict[str, tuple[str | bytes, str]] = {
    "broken": ("contexts: [\n", "yaml:2:1: "),
    "alias bomb": (BOMB, "alias|anchor"),
    "duplicate keys": ("contexts:\n  a: {bootstrap_servers: [x:1]}\n  a: {bootstrap_servers: [y:1]}\n", "yaml:3:3: "),
    "unknown key": ("contexs: {}\n", "contexs"),
    "a tag": ("contexts: !!python/object/apply:os.system [id]\n", "tag|python"),
    "not UTF-8": (b"\xff\xfe\x00", "UTF-8|utf-8|text"),
    "a list": ("- 1\n", "must be a mapping"),
    "huge": ("# " + "x" * 5_000_000, "large|big|bytes"),
}


@pytest.mark.parametrize("name", FILES)
def test_config_file(name: str, own_kctl: Kctl, tmp_path: Path) -> None:
    content, says = FILES[name]
    config = tmp_path / "config.yaml"
    config.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = own_kctl("context", "list", env={"KCTL_CONFIG": str(config)})
    assert result.code == 2, str(result)
    assert re.search(says, result.err), str(result)
    assert "config.yaml" in result.err
    assert "Traceback" not in result.err


# --- the machine ---------------------------------------------------------------------------------------------------


def _in_own_mounts(own_kctl: Kctl, mounts: list[str], argv: list[str], **environment: str) -> Result:
    """Run kctl in a mount namespace of its own: hides a folder, or gives it a small file system."""
    inside = " && ".join([*mounts, 'exec "$@"'])
    started = time.monotonic()
    done = subprocess.run(
        ["/usr/bin/unshare", "--mount", "--map-root-user", "/bin/sh", "-c", inside, "sh", str(SCRIPT), *argv],
        env={**own_kctl.environment, **environment}, capture_output=True, text=True, timeout=120, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Result(tuple(argv), done.returncode, done.stdout, done.stderr, time.monotonic() - started)


def _hide_every_java() -> list[str]:
    wheel = bundled_java_home()
    folders = [Path("/usr/lib/jvm"), *([wheel] if wheel else [])]
    return [f"/bin/mount -t tmpfs none {shlex.quote(str(folder))}" for folder in folders if folder.is_dir()]


CREATE = ["cluster", "create", "c", "--use", "--layout", "single"]
SPARK = ["spark", "lag", "--bootstrap-server", "127.0.0.1:1"]  # looked for before the cluster is


NEED_JAVA = pytest.mark.parametrize("argv", [CREATE, SPARK], ids=["cluster", "spark"])


@NEED_JAVA
def test_no_java(own_kctl: Kctl, tmp_path: Path, argv: list[str]) -> None:
    result = _in_own_mounts(own_kctl, _hide_every_java(), argv, PATH=str(tmp_path), JAVA_HOME="")
    assert result.code == 4, str(result)
    assert "Java" in result.err
    assert own_kctl.json("cluster", "list") == []


@NEED_JAVA
def test_java_too_old(own_kctl: Kctl, tmp_path: Path, argv: list[str]) -> None:
    # A stand-in: no Java 8 is at hand, and what counts is only what it says of its version.
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_432\"' >&2\n")
    java.chmod(0o755)
    home = str(tmp_path / "old")
    result = _in_own_mounts(own_kctl, _hide_every_java(), argv, PATH=str(java.parent), JAVA_HOME=home)
    assert result.code == 4, str(result)
    assert re.search(r"8.*17|17.*8", result.err, re.DOTALL), str(result)


def test_full_disk(own_kctl: Kctl, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounts = [f"/bin/mount -t tmpfs -o size=64k none {shlex.quote(str(folder))}"]
    result = _in_own_mounts(own_kctl, mounts, [*CREATE, "--dir", str(folder / "c")])
    assert result.code == 5, str(result)
    assert re.search("no space left", result.err, re.IGNORECASE), str(result)
    assert "Traceback" not in result.err
    assert own_kctl.json("cluster", "list") == []


def test_a_closed_pipe_is_quiet(kctl: Kctl, places: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{SCRIPT} cluster export | head -c 1; echo ${{PIPESTATUS[0]}} >&2"],
        env=kctl.environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "{"
    assert done.stderr.strip() in {"0", "141"}, done.stderr


INTERRUPTED = [
    ["topic", "list"],
    ["lag"],
    ["consume", "bad-input"],
    ["produce", "bad-input"],
    ["lag", "--watch"],
    ["cluster", "logs", "{name}", "--follow"],
]


@pytest.mark.parametrize("argv", INTERRUPTED, ids=" ".join)
@pytest.mark.parametrize("after_s", [0.05, 0.3, 1.5])
def test_ctrl_c_anywhere(argv: list[str], after_s: float, kctl: Kctl, places: dict[str, str]) -> None:
    """Before the imports are done, while connecting, while working: no traceback, exit code 130 (or done before)."""
    process = subprocess.Popen(
        [str(SCRIPT), *(word.format(**places) for word in argv)],
        env=kctl.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    try:
        err = _ended(process)
    finally:
        process.kill()
    if "Traceback" in err:
        assert "kctl/__main__.py" not in err, err  # Python itself was still starting: not kctl's to catch
        return
    if after_s < 0.1 and process.returncode == 1 and err == "KeyboardInterrupt\n":
        return  # so does Python end that has no traceback yet
    assert process.returncode in {0, 130, -signal.SIGINT}, f"{process.returncode}: {err}"


def _ended(process: subprocess.Popen[str]) -> str:
    """What it said. Python drops a KeyboardInterrupt that it meets in a callback of its imports: whoever sees nothing
    happen presses it again."""
    try:
        return process.communicate(timeout=10)[1]
    except subprocess.TimeoutExpired as exc:
        if b"Exception ignored in" not in (exc.stderr or b""):
            raise
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=20)[1]
