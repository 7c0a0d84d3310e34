"""Kafka's jars by their Maven coordinates, without Maven: by Apache Ivy, whose jar pyspark includes.

`m2compatible` makes Ivy use Maven's layout: with its default layout it finds nothing in a Maven repository.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from kctl.base import paths
from kctl.deploy.process import run_logged
from kctl.deploy.runtime.java import bundled_java_home, find_java
from kctl.deploy.runtime.maven import Update, coordinates, failure
from kctl.deploy.runtime.trust_store import trust_options
from kctl.errors import NotSupported, OperationFailed

REPOSITORY_VARIABLE = "KCTL_MAVEN_REPOSITORY"
_FOUND = re.compile(r"^\s+found \S+#\S+;\S+ in ")
_FETCHED = re.compile(r"\[SUCCESSFUL \]")


def find_ivy() -> Path | None:
    """Return Ivy's jar in the installed pyspark, without importing it; None without pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return max((Path(spec.origin).parent / "jars").glob("ivy-*.jar"), default=None)


def settings(repository: str | None) -> str:
    """Return Ivy's settings: one repository in Maven's layout (default: Maven Central)."""
    root = f" root={quoteattr(repository)}" if repository else ""
    return (
        '<ivysettings><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true" checksums="sha1,md5"{root}/>'
        "</resolvers></ivysettings>\n"
    )


def module(version: str) -> str:
    """Return an Ivy module that depends on Kafka. `default->default` is Maven's runtime scope."""
    dependencies = "".join(
        f'<dependency org="{c.group}" name="{c.artifact}" rev="{c.version}" conf="default->default"/>\n'
        for c in coordinates(version)
    )
    return (
        '<ivy-module version="2.0"><info organisation="kctl" module="kafka-runtime"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        f"<dependencies>\n{dependencies}</dependencies></ivy-module>\n"
    )


def copy_jars_with_ivy(version: str, libs: Path, *, timeout_s: float, update: Update) -> None:
    """Copy Kafka's jars into `libs`. Downloads stay in kctl's cache, so that an interrupted run resumes.

    Raises NotFound, NotSupported (no Java), ConnectionFailed, TimedOut, OperationFailed.
    """
    jar = find_ivy()
    if jar is None:
        raise NotSupported("Ivy is not installed", hint="run `pip install 'kctl[spark]'`, or install mvn")
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="kctl-ivy-") as name:
        folder = Path(name)
        (folder / "settings.xml").write_text(settings(os.environ.get(REPOSITORY_VARIABLE)), encoding="utf-8")
        (folder / "ivy.xml").write_text(module(version), encoding="utf-8")
        argv = [
            str(java.executable), "-Xmx256m", *proxy_options(os.environ),
            *trust_options(java.home, bundled_java_home(), folder), "-cp", str(jar), "org.apache.ivy.Main",
            "-settings", "settings.xml", "-ivy", "ivy.xml", "-confs", "default",
            "-cache", str(paths.cache_dir() / "ivy"), "-types", "jar", "bundle",
            "-retrieve", f"{libs}/[artifact]-[revision](-[classifier]).[ext]",
        ]  # fmt: skip
        counts = {"found": 0, "fetched": 0}

        def on_line(line: str) -> None:
            counts["found"] += bool(_FOUND.match(line))
            counts["fetched"] += bool(_FETCHED.search(line))
            if counts["fetched"]:
                update(f"Kafka by Ivy: {counts['fetched']} jars downloaded", None, None)
            else:
                update(f"Kafka by Ivy: {counts['found']} jars found", None, None)

        ended = run_logged(argv, timeout_s=timeout_s, on_line=on_line, cwd=folder)
    if ended.code:
        raise failure(version, "Ivy", ended.tail)
    if not any(libs.glob("*.jar")):
        raise OperationFailed("Ivy succeeded but copied no jar")


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Return Java's system properties for http_proxy, https_proxy and no_proxy (without passwords)."""
    options = []
    for scheme in ("http", "https"):
        value = environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY") or ""
        parts = urllib.parse.urlsplit(value if "://" in value else f"http://{value}")
        if value and parts.hostname:
            options += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={parts.port or 80}"]
    excluded = environ.get("no_proxy") or environ.get("NO_PROXY")
    if options and excluded:
        options.append("-Dhttp.nonProxyHosts=" + "|".join(h.strip() for h in excluded.split(",") if h.strip()))
    return options
