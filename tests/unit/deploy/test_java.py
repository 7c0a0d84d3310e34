"""Finding a Java: versions as Javas write them, the order of places, and what is said when none will do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kctl.deploy.runtime import java_launcher
from kctl.deploy.runtime.java import Java, bundled_java_home, feature_version, find_java, inspect_java
from kctl.errors import NotSupported


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("17.0.15", 17), ("25", 25), ("21-ea", 21), ("1.8.0_402", 8), ("1.7.0", 7), ("11.0.2+9", 11), ("25.0.2.1", 25),
        ("", None), ("unknown", None),
    ],
)  # fmt: skip
def test_feature_version(text: str, version: int | None) -> None:
    assert feature_version(text) == version


def fake_java(home: Path, version: str | None, prints: str = "") -> Path:
    """A folder like a JDK's. version None: no release file, so that the launcher is asked; it prints `prints`."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{prints}\nEND\n")
    launcher.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{version}"\n')
    return home


def find(environ: dict[str, str], *well_known: Path, minimum: int = 17) -> Java:
    return find_java(minimum, environ=environ, well_known=tuple(map(str, well_known)), bundled=False)


def test_java_home_then_path_then_well_known(tmp_path: Path) -> None:
    at_home, on_path, known = (fake_java(tmp_path / name, "17.0.1") for name in ("home", "path", "known"))
    everything = {"JAVA_HOME": str(at_home), "PATH": f"{tmp_path / 'none'}:{on_path}/bin"}
    assert find(everything, known).home == at_home
    del everything["JAVA_HOME"]
    assert find(everything, known).home == on_path
    assert find({"PATH": "/nowhere"}, known).home == known


def test_an_old_one_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    new = fake_java(tmp_path / "new", "21")
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": f"{tmp_path}/old/bin:{tmp_path}/new/bin"}
    assert find(environ) == Java(new / "bin" / "java", 21, new)


def test_the_newest_well_known_by_name_comes_first(tmp_path: Path) -> None:
    for version in ("17", "21"):
        fake_java(tmp_path / "jvm" / f"java-{version}", version)
    assert find({"PATH": ""}, tmp_path / "jvm" / "*").version == 21


def test_none_and_too_old_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match="Java 17 or newer is needed; none was found") as caught:
        find({"PATH": "/nowhere"})
    assert caught.value.hint is not None
    assert "JAVA_HOME" in caught.value.hint
    assert "kctl[jre]" in caught.value.hint
    with pytest.raises(NotSupported, match="none was found, and /nowhere, which JAVA_HOME names, has none that runs"):
        find({"JAVA_HOME": "/nowhere", "PATH": ""})
    old = fake_java(tmp_path / "old", "1.8.0_402")
    with pytest.raises(NotSupported, match=f"only Java 8 was found, in {old}"):
        find({"JAVA_HOME": str(old), "PATH": ""})


def test_a_launcher_without_release_file_is_asked(tmp_path: Path) -> None:
    real = tmp_path / "real"
    shim = fake_java(tmp_path / "shim", None, f'    java.home = {real}\nopenjdk version "21.0.1" 2023-10-17')
    assert inspect_java(shim / "bin" / "java") == Java(shim / "bin" / "java", 21, real)
    assert inspect_java(fake_java(tmp_path / "mute", None) / "bin" / "java") is None


def test_links_lead_to_the_real_home(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "jdk-17", "17.0.1")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(real / "bin" / "java")
    assert inspect_java(link) == Java(real / "bin" / "java", 17, real)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert inspect_java(loop) is None


def test_what_cannot_run_is_no_java(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "17")
    (home / "bin" / "java").chmod(0o644)
    assert inspect_java(home / "bin" / "java") is None
    assert inspect_java(home / "bin") is None


def test_the_jre_of_the_wheel_is_the_last_resort() -> None:
    home = bundled_java_home()
    assert home is not None, "the jre extra belongs to the test environment"
    assert find_java(environ={"PATH": ""}, well_known=()) == Java((home / "bin" / "java").resolve(), 25, home.resolve())


# --- Spark's launcher -----------------------------------------------------------------------------------------------


def test_a_java_with_the_module_is_spark_s_own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "jdk", "17")
    with (home / "release").open("a") as file:
        file.write('MODULES="java.base jdk.incubator.vector"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_launcher.java_home_for_spark() == home


def test_a_java_without_it_gets_a_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "it's a jre", "25")
    (home / "release").write_text('JAVA_VERSION="25"\nMODULES="java.base jdk.incubator.vectors"\n')
    echo = home / "bin" / "java"
    echo.write_text('#!/bin/sh\nfor a do printf "<%s>" "$a"; done\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    shaped = java_launcher.java_home_for_spark()
    assert shaped.is_relative_to(tmp_path / "data")
    argv = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b  c", "", "*", "Main", "--add-modules=other"]
    printed = subprocess.run([shaped / "bin" / "java", *argv], capture_output=True, text=True, check=True).stdout
    assert printed == "<-Xmx1g><-Dx=a b  c><><*><Main><--add-modules=other>"
    written = (shaped / "bin" / "java").stat().st_mtime_ns
    assert java_launcher.java_home_for_spark() == shaped
    assert (shaped / "bin" / "java").stat().st_mtime_ns == written


def test_the_wheel_s_jre_runs_behind_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = bundled_java_home()
    assert home is not None
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    option = "--add-modules=jdk.incubator.vector"
    direct = subprocess.run([home / "bin" / "java", option, "-version"], capture_output=True, text=True, check=False)
    assert direct.returncode != 0, "the wheel has the module now: the launcher is needed no more"
    launcher = java_launcher.java_home_for_spark() / "bin" / "java"
    behind = subprocess.run([launcher, option, "-version"], capture_output=True, text=True, check=True)
    assert 'version "25' in behind.stderr
