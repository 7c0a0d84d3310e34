"""A user id without a name or a home, as containers have it that run under any id (OpenShift)."""

from __future__ import annotations

import os
import pwd
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.paths import user_without_name
from kctl.commands import app
from kctl.spark.session import _name_user


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> Any:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(os, "getuid", lambda: 1000690000)


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "uid-1000690000"),
        ({"USER": "", "LOGNAME": " "}, "uid-1000690000"),
        ({"USER": "default"}, "default"),
        ({"LOGNAME": "l", "USER": "u"}, "u"),
        ({"HADOOP_USER_NAME": "hdfs", "USER": "u"}, "hdfs"),
        ({"SPARK_USER": "spark"}, "spark"),
    ],
)
def test_a_name_is_made(environ: dict[str, str], name: str, nameless: None) -> None:
    assert user_without_name(environ) == name


def test_a_user_with_a_name_keeps_it() -> None:
    assert user_without_name({"USER": "other"}) is None


def test_hadoop_is_told(nameless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ops")
    calls: list[object] = []
    users = SimpleNamespace(setLoginUser=calls.append, createRemoteUser=lambda name: ("user", name))
    hadoop = SimpleNamespace(security=SimpleNamespace(UserGroupInformation=users))
    _name_user(SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop))))
    assert calls == [("user", "ops")]


@pytest.mark.parametrize("home", [None, ""])
@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["zk", "ls", "--help"], 0),
        (["playbook", "list"], 0),
        (["context", "list"], 2),
        (["topic", "list"], 2),
        (["topic", "list", "--bootstrap-server", "127.0.0.1:1", "--command-config", "~/x.properties"], 2),
        (["context", "import", "~/config.yml", "--from", "kafkactl"], 2),
        (["cluster", "list"], 2),
    ],
)
def test_without_a_home(
    argv: list[str], code: int, home: str | None, nameless: None, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "KCTL_CONFIG", "KCTL_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert app.main(argv) == code
    err = capsys.readouterr().err
    assert "unexpected" not in err
    assert code == 0 or "home" in err.lower() or "No such" in err
