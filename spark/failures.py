"""Spark failures as one-line errors: Java's stack traces and pyspark's error classes, mapped to their cause.

Each rule is a pattern for the text of an exception or for the JVM's log. The first match wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.errors import ConnectionFailed, KctlError, NotSupported, OperationFailed, UsageError
from kctl.spark.settings import EXTRA_HINT

_MEMORY_HINT = "raise --driver-memory, for example --driver-memory 4g"
_EXECUTOR_HINT = "raise the memory of executors, for example --conf spark.executor.memory=4g"
_BUNDLE_HINT = "run `kctl spark bundle`: it packs this kctl for executors and prints the options to set"
# 52: org.apache.spark.util.SparkExitCode.OOM; 137: killed by Kubernetes or YARN for exceeding the container's limit.
_EXECUTOR_OOM = (
    r"(?:exited with code|exit status:|exit code:?) (?:52|137)\b|OOMKilled|Container killed by YARN"
    r"|Job aborted due to stage failure[^\x00]*?java\.lang\.OutOfMemoryError"
)

# (pattern, class, message, hint); {0} is the first group.
_RULES: tuple[tuple[re.Pattern[str], type[KctlError], str, str | None], ...] = tuple(
    (re.compile(pattern), error, message, hint)
    for pattern, error, message, hint in (
        (_EXECUTOR_OOM, OperationFailed, "an executor ran out of memory", _EXECUTOR_HINT),
        (r"java\.lang\.OutOfMemoryError", OperationFailed, "Spark ran out of memory", _MEMORY_HINT),
        (
            r"is bigger than [\w.]*maxResultSize \(([^)\n]*)\)",
            OperationFailed, "the report has more rows than the driver accepts ({0})",
            "set --worst or names for fewer rows, or raise the limit: --conf spark.driver.maxResultSize=4g",
        ),
        (
            r"Python worker exited unexpectedly|\bMemoryError\b",
            OperationFailed, "a Python worker died, probably for lack of memory",
            "run fewer tasks at once (spark.executor.cores, local[1]), or raise spark.executor.memoryOverhead",
        ),
        (
            r"(System memory \d+ must be at least \d+)",
            UsageError, "the driver has too little memory: {0}", _MEMORY_HINT,
        ),
        (
            r"(Invalid (?:maximum|initial) heap size: \S+|Too small maximum heap|Could not reserve enough space[^\n]*)",
            UsageError, "Java rejects --driver-memory: {0}", _MEMORY_HINT,
        ),
        (
            r"PYTHON_VERSION_MISMATCH[^\n]*|Python in worker has different version[^\n]*",
            NotSupported, "the executors run a different Python version than kctl",
            "set PYSPARK_PYTHON, or --conf spark.pyspark.python=…, to the same version on every node",
        ),
        (
            r"No module named '?kctl\.|(?:Can't get attribute|has no attribute)[^\n]*'kctl[.\w]*'",
            NotSupported, "the executors have a different version of kctl", _BUNDLE_HINT,
        ),
        (
            r"No module named '?(kctl|pyarrow|pandas|kafka)\b",
            NotSupported, "the executors' Python has no {0}",
            f"{_BUNDLE_HINT}; or install kctl[spark] on every node, and set PYSPARK_PYTHON to that Python",
        ),
        (
            r'Cannot run program "([^"]+)"',
            NotSupported, "the executors cannot run {0}",
            "set PYSPARK_PYTHON, or --conf spark.pyspark.python=…, to a Python that is on every node",
        ),
        (
            r"port number from pyspark\.daemon's stdout",
            NotSupported, "the Python configured for Spark exits immediately",
            "set PYSPARK_PYTHON, or --conf spark.pyspark.python=…, to a Python of kctl's version; -v shows its output",
        ),
        (
            r"Master removed our application: FAILED",
            OperationFailed, "the Spark cluster cannot run executors",
            "check the worker's log, and the application's stderr on the worker's web page",
        ),
        (
            r"ExecutorLostFailure \(executor \S+ exited[^\n]*?Reason: ([^\n]+)",
            OperationFailed, "Spark lost its executors: {0}", "check the workers' logs",
        ),
        (
            r"(All masters are unresponsive|Could not connect to [^\s.]+)",
            ConnectionFailed, "the Spark master does not respond",
            "check that it is up and that its version matches the installed pyspark",
        ),
        (
            r"(?:When running with master 'yarn'|HADOOP_CONF_DIR)[^\n]*",
            UsageError, "Spark has no YARN configuration", "set HADOOP_CONF_DIR to the folder with yarn-site.xml",
        ),
        (
            r"UnsupportedClassVersionError|has been compiled by a more recent version of the Java",
            NotSupported, "Spark needs Java 17 or newer", "set JAVA_HOME to such a Java",
        ),
        (
            r"\[(?:INVALID_CONF_VALUE|CODEC_)[\w.]*\] ([^\n]+?)(?: SQLSTATE: \w+)?(?:\n|$)",
            UsageError, "Spark rejects a setting: {0}", "check --conf and spark-defaults.conf",
        ),
        (
            r"(?:\n|Caused by): java\.lang\.ClassNotFoundException: ([\w.$]+)",
            UsageError, "Spark has no class {0}", "check the names in --conf; add jars with --conf spark.jars=…",
        ),
        (
            r"invalid null input: name",
            NotSupported, "Hadoop needs a user name, but this user id has none",
            "add the user id to /etc/passwd, or use --master local",
        ),
        (r"No space left on device", OperationFailed, "the disk is full", "set TMPDIR to a folder with free space"),
        (r"ModuleNotFoundError: No module named '([^']+)'", NotSupported, "Python has no {0}", EXTRA_HINT),
    )
)  # fmt: skip
_JAVA_CAUSE = re.compile(
    r"^(?:Caused by: |: |Exception in thread \S+ )?([\w.$]+(?:Exception|Error)): (.+)$", re.MULTILINE
)
_MAX_MESSAGE = 300


def explain(text: str, *, fallback: str, log: str = "") -> KctlError:
    """Return the error for `text` (of an exception) or for the end of the log; else `fallback` with the last cause."""
    for source in (text, log):
        for pattern, error, message, hint in _RULES:
            match = pattern.search(source)
            if match:
                return error(message.format(*match.groups()), hint=hint)
    causes = _JAVA_CAUSE.findall(text) or _JAVA_CAUSE.findall(log)
    message = causes[-1][1] if causes else text.partition("\n")[0]  # pyspark's own exceptions start with the problem
    cause = f": {message.strip()[:_MAX_MESSAGE]}" if message.strip() else ""
    return OperationFailed(f"{fallback}{cause}", hint="run the command again with -v to see Spark's log")


def died(returncode: int, log: str) -> KctlError:
    """Return the error that explains why the JVM exited."""
    how = f"was killed by signal {-returncode}" if returncode < 0 else f"ended with exit code {returncode}"
    return explain(log, fallback=f"Spark's JVM {how}")


@contextmanager
def explained(log: Callable[[], str]) -> Iterator[None]:
    """Turn exceptions of pyspark and py4j inside the block into KctlError. log: returns the end of Spark's log."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as exc:
        raise explain(_text(exc), fallback="the Spark job failed", log=log()) from exc


def _text(exc: Exception) -> str:
    """Return the text of an exception. pyspark's exceptions query the JVM, which may have exited."""
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - py4j's own errors, or an assertion
        return type(exc).__name__
