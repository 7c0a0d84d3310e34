"""The producer of a validation logs in with secrets that nobody sees, and says why it may not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.contexts.command_config import read_client_config
from kctl.deploy.process import command_line
from kctl.errors import OperationFailed
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.validate.workload.processes import read_sent, start_producer
from kctl.validate.workload.read_log import read_log
from kctl.validate.workload.records import new_run
from kctl.validate.workload.settings import ProducerSettings
from kctl_testing import Kctl, within
from secure_cluster import PASSWORDS, SecureCluster


def target(secure: SecureCluster, properties: str) -> Target:
    return Target("secure", (secure.bootstrap,), None, read_client_config(properties)[1])


def seen(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.iterdir())


def test_the_password_is_in_no_command_line_and_in_no_file(
    own_kctl: Kctl, secure: SecureCluster, tmp_path: Path
) -> None:
    own_kctl.ok(*secure.options(secure.admin), "topic", "create", "valcore-secure", "--replication-factor", "1")
    folders = tmp_path / "admin", tmp_path / "nobody"
    for folder in folders:
        folder.mkdir(mode=0o700)
    settings = ProducerSettings("valcore-secure", new_run(), per_s=100)
    producer = start_producer(target(secure, secure.admin), settings, folders[0])
    try:
        producer.wait_acked(10, within(30))
        argv = command_line(producer.identity.pid)
        assert argv is not None
        assert not [word for word in argv if PASSWORDS["admin"] in word]
        assert PASSWORDS["admin"] not in seen(folders[0])
        assert sorted(path.name for path in folders[0].iterdir()) == ["producer.journal", "producer.output"]
        assert {path.stat().st_mode & 0o077 for path in folders[0].iterdir()} == {0}
        producer.stop(within(30))
    finally:
        producer.kill()
    with connect(target(secure, secure.admin)) as client:
        log = read_log(client, "valcore-secure", settings.run)
    assert len(log[0].offsets) == read_sent(folders[0]).partitions[0].count
    with pytest.raises(OperationFailed, match=r"the producer exited: .*(not authorized|does not exist)") as told:
        start_producer(target(secure, secure.nobody), settings, folders[1])
    assert PASSWORDS["nobody"] not in told.value.message + seen(folders[1])
    assert sorted(path.name for path in folders[1].iterdir()) == ["producer.output"]
