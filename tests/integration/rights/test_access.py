"""ACLs, users and quotas on a cluster with an authorizer: as its super user, and as a user without rights."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
from pathlib import Path

import pytest

from in_process import InProcess
from java_tools import java_tool
from kctl_testing import SCRIPT, Kctl, eventually
from protected_cases import SECURE
from secure_cluster import PASSWORDS, SecureCluster


@pytest.fixture
def admin(own_kctl: Kctl, secure: SecureCluster) -> InProcess:
    """A kctl whose current context is the cluster, as its super user."""
    security = {
        "protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "admin",
        "sasl_password_env": "ADMIN_PASSWORD",
    }
    kctl = InProcess(own_kctl.home, {**own_kctl.environment, "ADMIN_PASSWORD": PASSWORDS["admin"]})
    folder = kctl.home / ".config" / "kctl"
    folder.mkdir(parents=True, exist_ok=True)
    context = {"bootstrap_servers": [secure.bootstrap], "security": security}
    (folder / "config.yaml").write_text(json.dumps({"current_context": "it", "contexts": {"it": context}}))
    return kctl


def _words(kctl: Kctl, *options: str) -> list[str]:
    return [row["acl"] for row in kctl.json("acl", "list", *options)]


def test_acls_are_added_listed_and_removed(admin: Kctl) -> None:
    words = [
        "allow lara read,write topic lara-orders*",
        'deny lara all group "lara\'s \\"group\\" *" from 10.0.0.1',
        "allow * describe topic lara-public",
    ]
    dry = admin.json("acl", "add", *words, "--dry-run")
    assert [row["result"] for row in dry] == ["would add"] * 4
    assert _words(admin, "--resource", "topic lara-orders*") == []

    unasked = admin("acl", "add", *words)
    assert (unasked.code, "Add 1 ACL on it?" in unasked.err) == (4, True), str(unasked)
    assert _words(admin, "--principal", "lara") == []
    done = admin.json("acl", "add", *words, "--yes")
    assert [row["result"] for row in done] == ["added"] * 4
    assert done[0] == {
        "acl": "allow lara read topic lara-orders*", "permission_type": "ALLOW", "principal": "User:lara",
        "operation": "READ", "resource_type": "TOPIC", "resource_name": "lara-orders", "pattern_type": "PREFIXED",
        "host": "*", "result": "added", "error": None,
    }  # fmt: skip
    again = admin.json("acl", "add", *words)
    assert [row["result"] for row in again] == ["already there"] * 4

    assert _words(admin, "--principal", "lara") == [
        words[1], "allow lara read topic lara-orders*", "allow lara write topic lara-orders*",
    ]  # fmt: skip
    assert _words(admin, "--covering", "topic lara-orders-eu", "--operation", "read") == [
        "allow lara read topic lara-orders*"
    ]
    assert _words(admin, "--host", "10.0.0.1", "--permission", "deny") == [words[1]]
    assert _words(admin, "--resource", "topic lara-orders") == [], "the name itself is not the prefix"

    refused = admin("acl", "remove", "--principal", "lara")
    assert (refused.code, "- deny lara all group" in refused.err) == (4, True), str(refused)
    for expect, says in (([], "the options select 3"), (["--expect", "2"], "the options select 3, not 2")):
        blind = admin("acl", "remove", "--principal", "lara", *expect, "--yes")
        assert (blind.code, blind.out, says in blind.err) == (4, "", True), str(blind)
    assert len(_words(admin, "--principal", "lara")) == 3
    wrong = admin("acl", "remove", words[0], "allow lora read topic lara-orders*", "--yes")
    assert (wrong.code, "did you mean allow lara read topic lara-orders*" in wrong.err) == (4, True), str(wrong)
    assert len(_words(admin, "--principal", "lara")) == 3
    gone = admin.json("acl", "remove", words[0], "allow lara read topic lara-never", "--if-exists", "--yes")
    assert [row["result"] for row in gone] == ["removed", "removed", "not there"]
    admin.ok("acl", "remove", "--principal", "lara", "--expect", "1", "--yes")
    admin.ok("acl", "remove", words[2], "--yes")
    for absent in ([words[2]], ["--principal", "lara"]):
        assert admin("acl", "remove", *absent, "--yes").code == 4
    unchanged = admin.ok("acl", "remove", words[2], "--if-exists")
    assert "not there" in unchanged.out, "nothing to confirm when there is nothing to remove"
    assert _words(admin, "--principal", "lara") == []


@pytest.mark.parametrize(
    "command",
    [
        ["add", "allow lara reed topic x"],
        ["add", "allow lara read topic x from example.org"],
        ["add", "allow lara write group x"],
        ["remove"],
        ["remove", "allow lara read topic x", "--principal", "lara"],
        ["remove", "allow lara read topic x", "--expect", "1"],
        ["list", "--covering", "topic x*"],
        ["explain", "User:"],
        ["explain", "lara", "--resource", "topic"],
    ],
)
def test_bad_words_change_nothing(admin: Kctl, command: list[str]) -> None:
    result = admin("acl", *command)
    assert (result.code, result.out) == (2, ""), str(result)


def test_explain_is_what_brokers_do(admin: Kctl, secure: SecureCluster, tmp_path: Path) -> None:
    """What `explain` says of a user is what that user gets."""
    admin.ok("user", "add", "ella", "--password-file", "-", stdin="secret-of-ella\n")
    admin.ok("topic", "create", "ella-1", "ella-2", "ella-3", "--partitions", "1", "--replication-factor", "1")
    admin.ok(
        "acl",
        "add",
        "allow ella read topic ella-*",
        "deny ella read topic ella-2",
        "deny * describe topic ella-3",
        "--yes",
    )
    found = admin.json("acl", "explain", "ella")
    assert found["principal"] == "User:ella"
    (right,) = found["rights"]
    assert right == {
        "resource": "topic ella-*", "resource_type": "TOPIC", "resource_name": "ella-", "pattern_type": "PREFIXED",
        "host": "*", "operations": ["READ"], "implied_operations": ["DESCRIBE"], "denied_operations": [],
        "exceptions": ["deny ella read topic ella-2", "deny * describe topic ella-3"],
    }  # fmt: skip
    may: dict[str, list[str]] = {}
    for name in ("ella-1", "ella-2", "ella-3"):
        (on,) = admin.json("acl", "explain", "ella", "--resource", f"topic {name}")["rights"]
        may[name] = on["operations"] + on["implied_operations"]
    assert may == {"ella-1": ["READ", "DESCRIBE"], "ella-2": ["DESCRIBE"], "ella-3": ["READ"]}

    ella = secure.options(secure.user("ella", "secret-of-ella"))
    listed = {row["topic"] for row in admin.json("topic", "list", *ella)}
    assert listed & set(may) == {name for name, operations in may.items() if "DESCRIBE" in operations}
    for name in ("ella-1", "ella-2"):
        Kctl(admin.home, admin.environment).ok("produce", name, stdin="line\n")
    assert admin.ok("consume", "ella-1", "--from-beginning", "--exit-eof", *ella).out == "line\n"
    denied = admin("consume", "ella-2", "--from-beginning", "--exit-eof", *ella)
    assert (denied.code, denied.out) == (4, ""), str(denied)
    assert "not authorized" in denied.err.lower(), str(denied)

    admin.ok("acl", "remove", "--principal", "ella", "--expect", "2", "--yes")
    admin.ok("acl", "remove", "deny * describe topic ella-3", "--yes")
    admin.ok("topic", "delete", "ella-1", "ella-2", "ella-3", "--yes")
    admin.ok("user", "remove", "ella", "--yes")
    said = admin.ok("acl", "explain", "ella")
    assert "super users may do everything" in said.err
    assert "no ACL allows ella anything" in said.err


def test_users(admin: Kctl, secure: SecureCluster, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_text("first-secret\n")
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "sha-512")
    assert admin.json("user", "add", "ulla", *both, "--dry-run")[0]["result"] == "would add"
    made = admin.json("user", "add", "ulla", *both, "--iterations", "4096", "--password-file", str(file))
    assert made == [
        {"user": "ulla", "mechanism": mechanism, "iterations": 4096, "result": "added", "error": None}
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    login = secure.options(secure.user("ulla", "first-secret"))
    eventually(lambda: admin("topic", "list", *login).code == 0, what="ulla logs in")

    asked = admin("user", "add", "ulla", "--password-file", str(file))
    assert (asked.code, "Replace the password of ulla (SCRAM-SHA-512)?" in asked.err) == (4, True), str(asked)
    replaced = admin("user", "add", "ulla", "--password-env", "NEW", "--yes", env={"NEW": "second-secret"})
    assert (replaced.code, "replaced" in replaced.out) == (0, True), str(replaced)
    eventually(lambda: admin("topic", "list", *login).code == 3, what="the old password is refused")
    admin.ok("topic", "list", *secure.options(secure.user("ulla", "second-secret")))
    assert admin.json("user", "list", "ulla") == [
        {"user": "ulla", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"user": "ulla", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]

    wrong = admin("user", "remove", "ulla", "ula", "--yes")
    assert (wrong.code, "user ula does not exist\n" in wrong.err) == (4, True), str(wrong)
    assert "did you mean ulla?" in wrong.err
    assert len(admin.json("user", "list", "ulla")) == 2
    gone = admin.json("user", "remove", "ulla", "nemo", "--if-exists", "--yes")
    assert [(row["user"], row["result"]) for row in gone] == [
        ("ulla", "removed"),
        ("ulla", "removed"),
        ("nemo", "not there"),
    ]
    assert admin("user", "remove", "ulla", "--yes").code == 4
    assert admin.ok("user", "remove", "ulla", "--if-exists").out.split()[-1] == "there"
    assert admin("user", "list", "ulla").code == 4


def test_passwords_that_are_refused(admin: Kctl, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.write_text("secret-open")
    open_to_all.chmod(0o646)
    for options, says in (
        ([], "no password"),
        (["--password-file", "-"], "is empty"),
        (["--password-file", str(open_to_all)], "is world-writable"),
        (["--password-stdin"], "is empty"),
        (["--password-stdin", "--password-file", "-"], "cannot be combined"),
        (["--password-env", "ABSENT"], "ABSENT"),
        (["--password-env", "A", "--password-file", "-"], "cannot be combined"),
        (["--password-file", "-", "--iterations", "100"], "is not between 4,096 and 16,384"),
        (["--password-file", "-", "--mechanism", "PLAIN"], "--mechanism"),
    ):
        result = admin("user", "add", "nemo", *options)
        assert (result.code, says in result.err) == (2, True), str(result)
        assert "secret-open" not in result.err
    assert admin("user", "list", "nemo").code == 4


def test_debug_shows_where_and_no_password(admin: Kctl, secure: SecureCluster) -> None:
    options = ("--debug", "-v", *secure.options(secure.nobody))
    result = admin("user", "add", "nemo", "--password-file", "-", *options, stdin="secret-of-nemo")
    assert (result.code, "Traceback (most recent call last)" in result.err) == (4, True), str(result)
    for secret in ("secret-of-nemo", PASSWORDS["nobody"]):
        assert secret not in result.out + result.err
    wrong = secure.options(secure.user("nemo", "secret-of-nemo"))
    refused = admin("user", "list", "--debug", "-v", *wrong)
    assert (refused.code, "secret-of-nemo" in refused.err) == (3, False), str(refused)


def test_a_password_typed_on_a_terminal_is_not_shown(admin: Kctl) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(SCRIPT), "user", "add", "terry"], env=admin.environment, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen = b""
    for prompt in (b"Password of terry: ", b"Again: "):
        while not seen.endswith(prompt):
            seen += os.read(master, 1024)
        os.write(master, b"typed-secret\n")
    try:
        while data := os.read(master, 1024):
            seen += data
    except OSError:  # the other end is closed
        pass
    assert process.wait(timeout=60) == 0, seen
    os.close(master)
    assert b"typed-secret" not in seen
    assert b"added" in seen
    admin.ok("user", "remove", "terry", "--yes")


def test_apply_makes_it_as_the_file_says(admin: Kctl, tmp_path: Path) -> None:
    admin.ok("acl", "add", "allow anna read topic anna-old")
    admin.ok("quota", "set", "--user", "anna-old", "producer_byte_rate=1000", "--yes")
    file = tmp_path / "access.yaml"
    file.write_text(
        "acls:\n  - allow anna read,describe topic anna-*\n"
        "quotas:\n  - {user: anna, client_id: <default>, producer_byte_rate: 10MB}\n"
    )
    before = (_words(admin), admin.json("quota", "list"))
    checked = admin("acl", "apply", "-f", str(file), "--prune", "--dry-run", "-o", "json")
    assert checked.code == 1, "something differs"
    dry = json.loads(checked.out)
    assert [(row["acl"], row["result"]) for row in dry["acls"]] == [
        ("allow anna read topic anna-*", "would add"), ("allow anna describe topic anna-*", "would add"),
        ("allow anna read topic anna-old", "would remove"),
    ]  # fmt: skip
    assert {(row["entity"], row["result"]) for row in dry["quotas"]} == {
        ("user anna, default client-id", "would set"), ("user anna-old", "would unset"),
    }  # fmt: skip
    assert admin("acl", "apply", "-f", str(file), "--prune").code == 4, "removing is confirmed"
    assert (_words(admin), admin.json("quota", "list")) == before

    added = admin.json("acl", "apply", "-f", str(file), "--yes")
    assert [row["result"] for row in (*added["acls"], *added["quotas"])] == ["added", "added", "set"]
    assert (added["unlisted_acls"], added["unlisted_quotas"]) == (1, 1)
    pruned = admin.json("acl", "apply", "-f", str(file), "--prune", "--yes")
    assert [row["result"] for row in (*pruned["acls"], *pruned["quotas"])] == ["removed", "unset"]
    assert "no differences" in admin.ok("acl", "apply", "-f", str(file), "--prune").err
    assert _words(admin) == ["allow anna describe topic anna-*", "allow anna read topic anna-*"]
    assert admin("acl", "apply", "-f", str(file), "--prune", "--dry-run").code == 0
    file.write_text("acls: []\nquotas: []\n")
    admin.ok("acl", "apply", "-f", str(file), "--prune", "--yes")
    assert (_words(admin), admin.json("quota", "list")) == ([], [])
    file.write_text("acls:\n  - allow anna reed topic x\n")
    wrong = admin("acl", "apply", "-f", str(file))
    assert (wrong.code, f"{file}:2:" in wrong.err) == (2, True), str(wrong)


def test_kafkas_tools_see_the_same(admin: Kctl, secure: SecureCluster, kafka_home: Path) -> None:
    server = ("--bootstrap-server", secure.bootstrap, "--command-config", secure.admin)
    acls, configs = "kafka.admin.AclCommand", "kafka.admin.ConfigCommand"
    # What kctl made, as they show it.
    admin.ok("acl", "add", "allow jan read topic jan-*", "deny jan all cluster from 10.0.0.1", "--yes")
    shown = java_tool(kafka_home, acls, *server, "--list", "--principal", "User:jan")
    assert "(resourceType=TOPIC, name=jan-, patternType=PREFIXED)" in shown
    assert "(principal=User:jan, host=*, operation=READ, permissionType=ALLOW)" in shown
    assert "(principal=User:jan, host=10.0.0.1, operation=ALL, permissionType=DENY)" in shown
    assert shown.count("principal=User:jan,") == 2
    # What they make, as kctl shows it, and knows it to be the same.
    options = ("--add", "--allow-principal", "User:jan2", "--force", "--topic", "jan2")
    java_tool(kafka_home, acls, *server, *options, "--consumer", "--group", "jan2", "--producer")
    mine = admin.json(
        "acl", "add", "--dry-run", "allow jan2 produce,consume topic jan2", "allow jan2 consume group jan2"
    )
    assert {row["result"] for row in mine} == {"already there"}
    assert len(_words(admin, "--principal", "jan2")) == len(mine) == 5
    for name, count in (("jan", "2"), ("jan2", "5")):
        admin.ok("acl", "remove", "--principal", name, "--expect", count, "--yes")

    admin.ok("user", "add", "jan", "--password-file", "-", stdin="secret-of-jan")
    admin.ok("quota", "set", "--user", "jan", "producer_byte_rate=1048576", "request_percentage=12.5", "--yes")
    shown = java_tool(kafka_home, configs, *server, "--describe", "--entity-type", "users", "--entity-name", "jan")
    assert "SCRAM credential configs for user-principal 'jan' are SCRAM-SHA-512=iterations=8192" in shown
    assert "producer_byte_rate=1048576.0" in shown
    assert "request_percentage=12.5" in shown
    admin.ok("quota", "unset", "--user", "jan", "producer_byte_rate", "request_percentage", "--yes")
    admin.ok("user", "remove", "jan", "--yes")


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        (["acl", "list"], "Describe"),
        (["acl", "add", "allow nobody all cluster"], "Describe"),
        (["acl", "remove", "allow nobody all cluster", "--yes"], "Describe"),
        (["acl", "explain", "nobody"], "Describe"),
        (["user", "list"], "Describe"),
        (["user", "add", "nobody", "--password-file", "-", "--yes"], "Describe"),
        (["user", "remove", "admin", "--yes"], "Describe"),
        (["quota", "list"], "DescribeConfigs"),
        (["quota", "set", "--user", "nobody", "producer_byte_rate=1000"], "DescribeConfigs"),
    ],
)
def test_without_rights(own_kctl: Kctl, secure: SecureCluster, command: list[str], needs: str) -> None:
    """It is said, and never shown as if there were none."""
    result = InProcess(own_kctl.home, own_kctl.environment)(*command, *secure.options(secure.nobody), stdin="secret")
    assert (result.code, result.out) == (4, ""), str(result)
    assert "CLUSTER_AUTHORIZATION_FAILED" in result.err
    assert f"this requires {needs} on the cluster" in result.err


def test_with_the_right_to_look_and_not_to_change(admin: Kctl, secure: SecureCluster) -> None:
    admin.ok("acl", "add", "allow nobody describe,describe-configs cluster")
    nobody = secure.options(secure.nobody)
    try:
        for command, needs in (
            (["acl", "add", "allow nobody all cluster"], "Alter"),
            (["acl", "remove", "allow nobody describe cluster", "--yes"], "Alter"),
            (["acl", "apply", "-f", "-", "--prune", "--yes"], "Alter"),
            (["user", "add", "nobody", "--password-file", "-", "--yes"], "Alter"),
            (["quota", "set", "--user", "nobody", "producer_byte_rate=1000", "--yes"], "AlterConfigs"),
        ):
            said = "acls: [allow nobody all cluster]" if command[1] == "apply" else "secret"
            result = admin(*command, *nobody, stdin=said)
            assert result.code == 4, str(result)
            assert f"this requires {needs} on the cluster" in result.err
        assert len(_words(admin, "--principal", "nobody")) == 2
        admin.ok("topic", "list", *nobody)
    finally:
        admin.ok("acl", "remove", "--principal", "nobody", "--expect", "2", "--yes")


def test_addresses_of_ipv6_are_as_brokers_write_them(admin: Kctl, secure: SecureCluster) -> None:
    """They compare text. What is typed otherwise is the same address, for adding, finding and removing."""
    words = "deny ipa all topic ipa from 2001:db8::1"
    (row,) = admin.json("acl", "add", words, "--yes")
    assert (row["host"], row["result"]) == ("2001:db8:0:0:0:0:0:1", "added")
    assert admin.json("acl", "add", words, "--yes")[0]["result"] == "already there"
    assert _words(admin, "--host", "2001:DB8:0::1") == ["deny ipa all topic ipa from 2001:db8:0:0:0:0:0:1"]
    admin.ok("acl", "add", "allow ipa read topic ipa")
    (right,) = admin.json("acl", "explain", "ipa", "--host", "2001:db8::1")["rights"]
    assert right["denied_operations"] == ["READ", "DESCRIBE"]
    assert admin.json("acl", "remove", words, "--yes")[0]["result"] == "removed"
    admin.ok("acl", "remove", "--principal", "ipa", "--expect", "1", "--yes")


def test_a_protected_context_asks_for_its_name(admin: Kctl) -> None:
    file = admin.home / ".config" / "kctl" / "config.yaml"
    admin.ok("acl", "add", "allow alice read topic alice")
    admin.ok("user", "add", "alice", "--password-file", "-", stdin="secret-of-alice")
    admin.ok("quota", "set", "--user", "alice", "producer_byte_rate=2000", "--yes")
    (admin.home / "access.yaml").write_text("acls: [allow pia read topic pia]\n")
    before = _everything(admin)
    config = json.loads(file.read_text())
    config["contexts"]["it"]["protected"] = True
    file.write_text(json.dumps(config))
    for path, line in SECURE.items():
        argv = [*path.split(), *shlex.split(line.replace("FOLDER", str(admin.home)))]
        refused = admin(*argv, "--yes")
        assert (refused.code, refused.out, "--confirm-cluster it" in refused.err) == (4, "", True), str(refused)
        wrong = admin(*argv, "--confirm-cluster", "dev")
        assert (wrong.code, wrong.out, "would act on 'it'" in wrong.err) == (2, "", True), str(wrong)
    assert _everything(admin) == before
    admin.ok("acl", "remove", "--principal", "alice", "--confirm-cluster", "it", "--expect", "1")
    admin.ok("user", "remove", "alice", "--confirm-cluster", "it")
    admin.ok("quota", "unset", "--user", "alice", "producer_byte_rate", "--confirm-cluster", "it")


def _everything(admin: Kctl) -> list[str]:
    return [admin.ok(what, "list", "-o", "json").out for what in ("acl", "user", "quota")]


def test_the_cluster_is_a_resource_to_explain(admin: Kctl) -> None:
    admin.ok("acl", "add", "allow carla alter cluster", "allow carla read topic carla")
    (right,) = admin.json("acl", "explain", "carla", "--resource", "cluster")["rights"]
    assert (right["resource"], right["operations"]) == ("cluster", ["ALTER"])
    admin.ok("acl", "remove", "--principal", "carla", "--expect", "2", "--yes")


@pytest.mark.parametrize("group", ["a\x1b[31m \u202e*", "a\u202eb", "a\x9bb"])
def test_hostile_names(admin: Kctl, group: str) -> None:
    admin.ok("acl", "add", f"allow mallory read group {json.dumps(group)}")
    (row,) = admin.json("acl", "list", "--principal", "mallory")
    assert row["resource_name"] == group
    shown = admin.ok("acl", "list", "--principal", "mallory").out
    assert not {"\x1b", "\u202e", "\x9b"} & set(shown)
    printed = shown.splitlines()[1].strip()
    assert admin.json("acl", "remove", printed, "--yes")[0]["result"] == "removed", "what is printed is itself"
