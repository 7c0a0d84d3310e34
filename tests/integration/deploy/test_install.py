"""install.sh as a newcomer runs it: a home of its own, no terminal. Packages come from pip's cache if it has them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.commands.completion.man_pages import MARKER

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "install.sh"

pytestmark = pytest.mark.timeout(1800)


class Installer:
    """Runs install.sh with a home of its own; pip's cache is the machine's, so that each run costs seconds."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "KCTL_", "KAFKA_"))}
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.environment = {**kept, "HOME": str(home), "PIP_CACHE_DIR": str(cache / "pip"), "KCTL_KAFKA_MIRROR": ""}
        self.prefix = home / ".local/share/kctl"

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SCRIPT), *args], env={**self.environment, **env}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=1700, check=False,
        )  # fmt: skip

    def ok(self, *args: str, **env: str) -> str:
        done = self.run(*args, **env)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def left(self) -> list[str]:
        """The files under the home; pip asks rustc for its version, whose launcher writes into the home."""
        found = (p.relative_to(self.home) for p in self.home.rglob("*"))
        return sorted(str(p) for p in found if p.parts[0] != ".rustup" and str(p) not in {".cache", ".config"})


@pytest.fixture
def installer(tmp_path: Path) -> Iterator[Installer]:
    home = tmp_path / "home with a space"
    home.mkdir()
    yield Installer(home)
    shutil.rmtree(home)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nonsense"], "unknown option or command: --nonsense"),
        (["--prefix"], "--prefix needs a value"),
        (["--completion", "tcsh"], "--completion tcsh is not bash, zsh, fish or none"),
        (["--purge"], "--purge requires --uninstall"),
        (["install"], "unknown option or command: install"),
    ],
)
def test_wrong_options(installer: Installer, args: list[str], message: str) -> None:
    done = installer.run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert installer.left() == []


def test_help_and_syntax(installer: Installer) -> None:
    done = installer.run("--help")
    assert done.returncode == 0
    assert "./install.sh demo" in done.stdout
    for option in re.findall(r"^ {8}(--[a-z-]+)[=)]", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE):
        assert option in done.stdout
    shells = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]
    for shell in shells:
        subprocess.run([shell, "-n", str(SCRIPT)], check=True)


def test_nothing_to_uninstall(installer: Installer) -> None:
    assert "is not installed" in installer.ok("--uninstall")
    assert installer.left() == []


LOG = "=== 2026-01-01T00:00:00Z install.sh install\n"


def _looks_installed(installer: Installer, made: str, log: str = LOG) -> Path:
    """What somebody else may have put where kctl would be; things beside it that must stay."""
    state = installer.prefix / "install"
    (state.parent / "venv" / "bin").mkdir(parents=True)
    state.mkdir()
    precious = installer.home / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    (state.parent / "venv" / "mine").write_text("mine")
    kctl = state.parent / "venv" / "bin" / "kctl"
    kctl.write_text(f"#!/bin/sh\ntouch '{installer.home}/ran'\nexit 1\n")
    kctl.chmod(0o755)
    (state / "install.log").write_text(log)
    (state / "made").write_text(made.format(home=installer.home, venv=state.parent / "venv"))
    return precious / "file"


@pytest.mark.parametrize("purge", [[], ["--purge"]])
@pytest.mark.parametrize(
    ("made", "log"),
    [
        ("", LOG),
        ("dir {home}/precious\n", LOG),
        ("tree {home}/precious\n", LOG),
        ("tree {venv}\n", "make: nothing to be done\n"),
        ("tree {venv}\n", ""),
        ("tree {venv}\nruntime 3.9.2/../../../../precious\n", LOG),
        ("tree {venv}\nruntime ../../precious\n", LOG),
        ("tree {venv}\nfile precious/file\n", LOG),
        ("tree {venv}\nfile {home}/x/../precious/file\n", LOG),
        ("tree {venv}\nrm {home}/precious\n", LOG),
        ("tree {venv}\n/precious/file\n", LOG),
    ],
)
def test_a_folder_that_only_looks_like_an_installation(
    installer: Installer, purge: list[str], made: str, log: str
) -> None:
    """Nothing of it is removed or run, by whatever name; nor what is a real installation's."""
    file = _looks_installed(installer, made, log)
    contexts = installer.home / ".config/kctl/config.yaml"
    contexts.parent.mkdir(parents=True)
    contexts.write_text("contexts: {}\n")
    done = installer.run("--uninstall", *purge)
    assert done.returncode == 4, done.stderr
    assert "nothing was removed" in done.stderr
    assert file.read_text() == (installer.prefix / "venv/mine").read_text() == "mine"
    assert contexts.exists()
    assert not (installer.home / "ran").exists()


def test_lines_that_name_foreign_files_remove_none(installer: Installer) -> None:
    file = _looks_installed(
        installer, "tree {venv}\nfile {home}/precious/file\nlink {home}/precious/link\ndir {home}/precious\n"
    )
    (file.parent / "link").symlink_to("file")
    completion = installer.home / ".local/share/bash-completion/completions/kctl"
    completion.parent.mkdir(parents=True)
    completion.touch()
    manual = installer.home / ".local/share/man/man1"
    manual.mkdir(parents=True)
    (manual / "kctl-lag.1").write_text(f"{MARKER}\n")
    for page in (manual / "kctl-x.1", manual / "lag.1", file.parent / "kctl-lag.1"):
        page.write_text(f"{MARKER}\n" if page.name != "kctl-x.1" else "mine")
    with (installer.prefix / "install/made").open("a") as made:
        made.write(f"file {completion}\ndir {completion.parent}\nman {manual}\nman {file.parent}\n")
    said = installer.ok("--uninstall")
    assert "it was not removed" in said
    assert file.read_text() == "mine"
    assert (file.parent / "link").is_symlink()
    assert not completion.parent.exists()
    assert sorted(page.name for page in manual.iterdir()) == ["kctl-x.1", "lag.1"]
    assert (file.parent / "kctl-lag.1").exists()
    assert not (installer.prefix / "venv").exists()


@pytest.mark.parametrize("kind", ["folder", "made"])
def test_what_is_a_link_is_not_followed(installer: Installer, kind: str) -> None:
    file = _looks_installed(installer, "tree {venv}\n")
    state = installer.prefix / "install"
    at = state if kind == "folder" else state / "made"
    at.rename(installer.home / "moved")
    at.symlink_to(installer.home / "moved")
    assert "nothing was removed" in installer.run("--uninstall", "--purge").stderr
    assert file.exists()
    assert (installer.home / "moved").exists()


@pytest.mark.parametrize("option", ["--prefix", "--bin-dir"])
@pytest.mark.parametrize("folder", ["", "a\nfile /etc/passwd", "/a\tb", "x\r"])
def test_names_of_folders_that_cannot_be_noted(installer: Installer, option: str, folder: str) -> None:
    for argv in ([option, folder], [f"{option}={folder}"]):
        done = installer.run(*argv, "--uninstall")
        assert done.returncode == 2, done.stderr
    assert installer.left() == []


def test_relative_folders_of_xdg_are_not_used(installer: Installer, tmp_path: Path) -> None:
    """As kctl has it: --purge would remove the current folder's kctl."""
    (tmp_path / "kctl").mkdir()
    (tmp_path / "kctl" / "file").write_text("mine")
    variables = {"XDG_CONFIG_HOME": ".", "XDG_DATA_HOME": ".", "XDG_CACHE_HOME": "."}
    done = subprocess.run(
        ["sh", str(SCRIPT), "--uninstall", "--purge"], env={**installer.environment, **variables}, cwd=tmp_path,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kctl" / "file").read_text() == "mine"


def test_clusters_that_run_are_not_purged_without_their_kctl(installer: Installer) -> None:
    clusters = installer.prefix / "clusters" / "dev"
    clusters.mkdir(parents=True)
    running = subprocess.Popen(["sh", "-c", 'read x; : "$0"', f"{clusters}/server.properties"], stdin=subprocess.PIPE)
    try:
        done = installer.run("--uninstall", "--purge", "--prefix", str(installer.home / "elsewhere"))
        assert done.returncode == 4, done.stderr
        assert clusters.is_dir()
    finally:
        running.kill()
        running.communicate()
    installer.ok("--uninstall", "--purge", "--prefix", str(installer.home / "elsewhere"))
    assert not clusters.exists()


def test_no_python(installer: Installer, tmp_path: Path) -> None:
    """A PATH with the system's tools and every Python replaced by one that is too old."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (
        "sh",
        "dirname",
        "date",
        "mkdir",
        "cat",
        "rm",
        "df",
        "awk",
        "grep",
        "uname",
        "id",
        "rmdir",
        "sed",
        "tail",
    ):
        (tools / name).symlink_to(shutil.which(name) or "/bin/false")
    old = "#!/bin/sh\nexit 1\n"
    for name in ("python3", "python3.10", "python3.11", "python3.12", "python3.13"):
        (tools / name).write_text(old)
        (tools / name).chmod(0o755)
    source = SCRIPT.read_text(encoding="utf-8").replace("/usr/bin/python3 /usr/local/bin/python3", "")
    copy = tmp_path / "checkout" / "install.sh"
    copy.parent.mkdir()
    copy.write_text(source)
    done = subprocess.run(
        ["/bin/sh", str(copy)], env={"HOME": str(installer.home), "PATH": str(tools)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert "no Python >= 3.10 with venv found" in done.stderr


@pytest.mark.long
def test_install_twice_use_and_uninstall(installer: Installer) -> None:
    first = installer.ok("--completion", "bash")
    link = installer.home / ".local/bin/kctl"
    assert f"{link.parent} is not on PATH" in first
    environment = installer.environment
    printed = subprocess.run([link, "--version"], env=environment, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"kctl \d+\.\d+\.\d+\n", printed)
    checked = subprocess.run([link, "runtime", "verify"], env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    completion = installer.home / ".local/share/bash-completion/completions/kctl"
    subprocess.run(["bash", "-n", str(completion)], check=True)
    assert (installer.home / ".local/share/man/man1/kctl-topic-list.1").read_text().startswith(MARKER)

    began = time.monotonic()
    second = installer.ok("--completion", "bash", PATH=f"{link.parent}:{environment['PATH']}")
    assert time.monotonic() - began < 30
    assert "Python packages: up to date" in second
    assert "kctl: up to date" in second
    assert "is not on PATH" not in second

    _uninstall_beside_a_cluster(installer, link)


def _uninstall_beside_a_cluster(installer: Installer, link: Path) -> None:
    """Refused while it runs, with everything left in place; then its data stay, until they are purged."""

    def kctl(*args: str) -> None:
        done = subprocess.run(
            [link, *args], env=installer.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    kctl("cluster", "create", "kept", "--use", "--layout", "single", "--heap", "256m")
    try:
        refused = installer.run("--uninstall")
        assert refused.returncode == 4, refused.stderr
        assert "is in use; nothing was removed" in refused.stderr
    finally:
        kctl("cluster", "stop", "kept", "--yes", "--force")
    removed = installer.ok("--uninstall")
    assert "clusters and their data remain" in removed
    assert "contexts remain in" in removed
    assert not link.exists()
    purged = installer.ok("--uninstall", "--purge")
    assert "clusters and contexts were removed" in purged
    assert installer.left() == []
    assert "is not installed" in installer.ok("--uninstall")


@pytest.mark.long
def test_a_foreign_kctl_is_left_alone(installer: Installer) -> None:
    foreign = installer.home / "bin" / "kctl"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    said = installer.ok(
        "--no-spark", "--no-kafka", "--prefix", str(installer.home / "opt"), "--bin-dir", str(foreign.parent)
    )
    assert f"{foreign} already exists and is a different kctl; it was not changed" in said
    assert (installer.home / "opt/venv/bin/kctl").exists()
    installer.ok("--uninstall", "--prefix", str(installer.home / "opt"))
    assert installer.left() == ["bin", "bin/kctl"]
    assert foreign.read_text() == "mine"


@pytest.mark.long
def test_a_foreign_folder_is_left_alone(installer: Installer) -> None:
    (installer.home / "opt/venv").mkdir(parents=True)
    done = installer.run("--no-spark", "--no-kafka", "--prefix", str(installer.home / "opt"))
    assert done.returncode == 4
    assert "does not belong to kctl" in done.stderr
    assert installer.left() == ["opt", "opt/venv"]


@pytest.mark.long
@pytest.mark.parametrize("at", ["virtual environment", "pinned packages", "Building and installing kctl"])
def test_killed_in_the_middle_and_run_again(installer: Installer, at: str) -> None:
    """kill -9 of the installer and all that it started, at each step; then the same command goes on to the end."""
    process = subprocess.Popen(
        [str(SCRIPT), "--no-spark", "--no-kafka"], env=installer.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    log = installer.prefix / "install/install.log"
    deadline = time.monotonic() + 300
    try:
        while not (log.exists() and at in log.read_text(encoding="utf-8", errors="replace")):
            assert process.poll() is None, f"it ended before: {at}"
            assert time.monotonic() < deadline, f"it never came to: {at}"
            time.sleep(0.01)
        time.sleep(0.3)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    installer.ok("--no-spark", "--no-kafka")
    link = installer.home / ".local/bin/kctl"
    helped = subprocess.run([link, "topic", "--help"], env=installer.environment, capture_output=True, check=False)
    assert helped.returncode == 0
    checked = [str(installer.prefix / "venv/bin/python"), "-m", "pip", "check"]
    assert subprocess.run(checked, env=installer.environment, capture_output=True, check=False).returncode == 0
    installer.ok("--uninstall")
    assert installer.left() == []


@pytest.mark.long
def test_interrupted(installer: Installer) -> None:
    """Ctrl-C, which a terminal sends to the whole group: one line, exit 130, no lock left."""
    with subprocess.Popen(
        [str(SCRIPT), "--no-spark", "--no-kafka"], env=installer.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        log = installer.prefix / "install/install.log"
        deadline = time.monotonic() + 60
        while not (log.exists() and "virtual environment" in log.read_text(encoding="utf-8")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted; run the same command again to resume" in said
    assert not (installer.prefix / "install/lock").exists()
    installer.ok("--uninstall")
    assert installer.left() == []


@pytest.mark.long
def test_two_at_once(installer: Installer) -> None:
    with subprocess.Popen(
        [str(SCRIPT), "--no-spark", "--no-kafka"], env=installer.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as first:  # fmt: skip
        deadline = time.monotonic() + 60
        while not (installer.prefix / "install/lock/pid").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        second = installer.run("--no-spark", "--no-kafka")
        first.communicate()
    assert second.returncode == 4
    assert f"another install.sh (process {first.pid}) is using" in second.stderr
    assert first.returncode == 0


@pytest.mark.long
def test_a_wrong_hash_installs_nothing(installer: Installer, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=shutil.ignore_patterns(".git", "build", ".*_cache"))
    lock = checkout / "requirements.lock"
    text = lock.read_text(encoding="utf-8")
    name = re.search(r"^(kafka-python==\S+) \\\n(?:    --hash=\S+(?: \\)?\n)+", text, re.MULTILINE)
    assert name is not None
    lock.write_text(text.replace(name.group(), f"{name.group(1)} \\\n    --hash=sha256:{'0' * 64}\n"))
    done = subprocess.run(
        [str(checkout / "install.sh"), "--no-spark", "--no-kafka"], env=installer.environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert not (installer.home / ".local/bin/kctl").exists()
