"""The command line of the driver's JVM.

For an embedded Spark, the JVM is started directly: no shell, no launcher JVM, no spark-defaults.conf of another
installation, and options for a fast start (serial collector, C1 compiler only, class archive). For a cluster, the
command is `bin/spark-submit`, which reads spark-env.sh, spark-defaults.conf and Hadoop's configuration as usual.
Values of `--conf` go through a file, never through argv.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kctl.base.own_python import child_environment
from kctl.errors import NotSupported, UsageError
from kctl.spark.settings import EXTRA_HINT, SparkSettings

# The options of Spark's own launcher (org.apache.spark.launcher.JavaModuleOptions), without --add-modules=
# jdk.incubator.vector: only MLlib uses that module, trimmed JREs lack it, and a JVM that has it prints a warning.
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",  # Arrow needs it since Java 24
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
# In a short run with a small heap, neither the C2 compiler nor a parallel collector pays off.
FAST_START = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
GATEWAY_CLASS = "org.apache.spark.api.python.PythonGatewayServer"

# Everything goes to the JVM's stderr, which the gateway stores.
LOG4J2 = """\
# Written by kctl for one Spark driver.
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
# A Python gateway counts as a shell, for which Spark sets the level to WARN unless a level is set here.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
"""

# Settings of another Spark on this machine, which the embedded Spark must ignore.
FOREIGN_VARIABLES = (
    "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "SPARK_MASTER", "SPARK_REMOTE", "SPARK_API_MODE",
    "SPARK_CONNECT_MODE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_TESTING", "SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY",
    "PYSPARK_SUBMIT_ARGS", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET",
)  # fmt: skip


def pyspark_home() -> Path:
    """Return the folder of the installed pyspark, which has Spark's jars. Does not import it. Raises NotSupported."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NotSupported("pyspark is not installed", hint=EXTRA_HINT)
    home = Path(spec.origin).parent
    if not (home / "jars").is_dir():
        raise NotSupported(f"pyspark in {home} has no jars: it is the client-only package", hint=EXTRA_HINT)
    return home


def embedded_command(java: Path, settings: SparkSettings, *, folder: Path, archive_options: Sequence[str]) -> list[str]:
    """Return argv of an embedded Spark. folder: its temporary folder, which has log4j2.properties."""
    return [
        str(java),
        "-cp",
        f"{pyspark_home() / 'jars'}/*",
        f"-Xmx{settings.driver_memory.lower().removesuffix('b')}",
        *MODULE_OPTIONS,
        *FAST_START,
        *archive_options,
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        f"-Djava.io.tmpdir={folder}",
        *_words(settings.conf, "spark.driver.extraJavaOptions"),
        GATEWAY_CLASS,
    ]


def _words(conf: Mapping[str, str], key: str) -> list[str]:
    """Split a setting into words as a shell does. Raises UsageError; its message omits the value."""
    try:
        return shlex.split(conf.get(key, ""))
    except ValueError as exc:
        raise UsageError(f"--conf {key} cannot be split into words: {exc}", hint="check its quotes") from exc


def embedded_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an embedded Spark: this Python for its workers, the loopback interface.

    SPARK_HOME is not set. With it, Spark would put python/lib/pyspark.zip first in the path of its workers, and each
    worker would spend more than a CPU second compiling imports. This Python has the same pyspark installed.
    """
    retained = {key: value for key, value in child_environment(environ).items() if key not in FOREIGN_VARIABLES}
    return {
        **retained,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONHASHSEED": "0",  # as bin/spark-submit sets it: workers must agree on the hash of a string
    }


def submit_command(settings: SparkSettings, *, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Return argv for a cluster: spark-submit of SPARK_HOME, else of pyspark. The caller writes the properties file."""
    home = Path(environ.get("SPARK_HOME") or pyspark_home())
    return [
        str(home / "bin" / "spark-submit"),
        "--master", settings.master_url,
        "--driver-memory", settings.driver_memory,
        "--properties-file", str(folder / "spark.properties"),
        "--load-spark-defaults",
        "pyspark-shell",
    ]  # fmt: skip


def submit_conf(conf: Mapping[str, str], *, folder: Path) -> dict[str, str]:
    """Return `conf` with kctl's Java options in spark.driver.defaultJavaOptions.

    spark.driver.extraJavaOptions is left to the user and spark-defaults.conf."""
    options = ("-XX:+ExitOnOutOfMemoryError", f'"-Dlog4j2.configurationFile={folder / "log4j2.properties"}"')
    return {**conf, _DEFAULT_OPTIONS: " ".join([*options, conf.get(_DEFAULT_OPTIONS, "")]).rstrip()}


def submit_environment(environ: Mapping[str, str], java_home: Path) -> dict[str, str]:
    """Return the environment for spark-submit, with PYSPARK_PYTHON (default: this Python)."""
    retained = {key: value for key, value in environ.items() if key not in FOREIGN_VARIABLES or key in _RETAINED}
    overrides = {"JAVA_HOME": str(java_home), "SPARK_HOME": environ.get("SPARK_HOME") or str(pyspark_home())}
    if environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        overrides["PYTHONPATH"] = os.pathsep.join([*packages_folders(), *filter(None, [environ.get("PYTHONPATH")])])
    else:
        retained = child_environment(retained)
    return {"PYSPARK_PYTHON": sys.executable, **retained, **overrides}


def packages_folders() -> list[str]:
    """Return the folders of kctl and pyarrow.

    Spark lists the partitions of a source on this machine, under PYSPARK_PYTHON, which may lack both packages."""
    specs = [importlib.util.find_spec(name) for name in ("kctl", "pyarrow")]
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin is not None]
    return list(dict.fromkeys(str(origin.parent.parent) for origin in origins))


_DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
_RETAINED = frozenset({"SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS"})


def properties(conf: Mapping[str, str]) -> str:
    """Return a Java properties file (java.util.Properties.load), with everything outside ISO 8859-1 escaped."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items())


def _escaped(text: str) -> str:
    out: list[str] = []
    for unit in text.encode("utf-16-be", "surrogatepass").hex(" ", 2).split():
        code = int(unit, 16)
        plain = (0x20 < code < 0x7F or (code == 0x20 and bool(out))) and chr(code) not in "\\=:#!"
        out.append(chr(code) if plain else f"\\u{code:04x}")
    return "".join(out)


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="latin-1") as file:
        file.write(text)
