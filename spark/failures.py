"""What goes wrong in Spark, told in a sentence: Java's stack traces and pyspark's error classes, by what they mean.

Each rule is a pattern in the text of an exception or of the JVM's log; the first that is found wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.errors import ConnectionFailed, KctlError, NotSupported, OperationFailed, UsageError
from kctl.spark.settings import EXTRA_HINT

_MEMORY_HINT = "give the driver more with --driver-memory, for example --driver-memory 4g"
_EXECUTOR_HINT = "give executors more, for example --conf spark.executor.memory=4g"
_BUNDLE_HINT = "`kctl spark bundle` packs this kctl for them, and prints the options with which they find it"
# 52: org.apache.spark.util.SparkExitCode.OOM; 137: killed, as Kubernetes and YARN do beyond a container's limit.
_EXECUTOR_OUT = (
    r"(?:exited with code|exit status:|exit code:?) (?:52|137)\b|OOMKilled|Container killed by YARN"
    r"|Job aborted due to stage failure[^\x00]*?java\.lang\.OutOfMemoryError"
)

# (pattern, class, message, hint); {0} is the first group.
_RULES: tuple[tuple[re.Pattern[str], type[KctlError], str, str | None], ...] = tuple(
    (re.compile(pattern), error, message, hint)
    for pattern, error, message, hint in (
        (_EXECUTOR_OUT, OperationFailed, "an executor ran out of memory", _EXECUTOR_HINT),
        (r"java\.lang\.OutOfMemoryError", OperationFailed, "Spark ran out of memory", _MEMORY_HINT),
        (
            r"is bigger than [\w.]*maxResultSize \(([^)\n]*)\)",
            OperationFailed, "the rows of the report are more than the driver takes ({0})",
            "--worst or names ask for fewer; --conf spark.driver.maxResultSize=4g takes more",
        ),
        (
            r"Python worker exited unexpectedly|\bMemoryError\b",
            OperationFailed, "a Python worker died, as it does where memory is short",
            "let fewer tasks run at once (spark.executor.cores, local[1]), or raise spark.executor.memoryOverhead",
        ),
        (
            r"(System memory \d+ must be at least \d+)",
            UsageError, "the driver has too little memory: {0}", _MEMORY_HINT,
        ),
        (
            r"(Invalid (?:maximum|initial) heap size: \S+|Too small maximum heap|Could not reserve enough space[^\n]*)",
            UsageError, "Java refuses --driver-memory: {0}", _MEMORY_HINT,
        ),
        (
            r"PYTHON_VERSION_MISMATCH[^\n]*|Python in worker has different version[^\n]*",
            NotSupported, "the executors run another Python version than kctl",
            "set PYSPARK_PYTHON, or --conf spark.pyspark.python=…, to the same version on every node",
        ),
        (
            r"No module named '?kctl\.|(?:Can't get attribute|has no attribute)[^\n]*'kctl[.\w]*'",
            NotSupported, "the executors have another version of kctl than this one", _BUNDLE_HINT,
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
            NotSupported, "the Python that Spark was told to run ends at once",
            "PYSPARK_PYTHON, or --conf spark.pyspark.python=…, is a Python of kctl's version; -v shows what it says",
        ),
        (
            r"Master removed our application: FAILED",
            OperationFailed, "the Spark cluster cannot run executors",
            "the worker's log, and the application's stderr in its web page, say why",
        ),
        (
            r"ExecutorLostFailure \(executor \S+ exited[^\n]*?Reason: ([^\n]+)",
            OperationFailed, "Spark lost its executors: {0}", "the workers' logs say why",
        ),
        (
            r"(All masters are unresponsive|Could not connect to [^\s.]+)",
            ConnectionFailed, "the Spark master does not answer", "is it up, and does its version fit this pyspark's?",
        ),
        (
            r"(?:When running with master 'yarn'|HADOOP_CONF_DIR)[^\n]*",
            UsageError, "Spark does not know where YARN is", "set HADOOP_CONF_DIR to the folder with yarn-site.xml",
        ),
        (
            r"UnsupportedClassVersionError|has been compiled by a more recent version of the Java",
            NotSupported, "Spark needs Java 17 or newer", "set JAVA_HOME to one",
        ),
        (
            r"\[(?:INVALID_CONF_VALUE|CODEC_)[\w.]*\] ([^\n]+?)(?: SQLSTATE: \w+)?(?:\n|$)",
            UsageError, "Spark refuses a setting: {0}", "look at --conf, and spark-defaults.conf",
        ),
        (
            r"(?:\n|Caused by): java\.lang\.ClassNotFoundException: ([\w.$]+)",
            UsageError, "Spark has no class {0}", "look at the names in --conf; jars go by --conf spark.jars=…",
        ),
        (
            r"invalid null input: name",
            NotSupported, "this user id has no name, which Hadoop needs",
            "add a line for it to /etc/passwd, or use --master local, where kctl names it",
        ),
        (r"No space left on device", OperationFailed, "the disk is full", "set TMPDIR to a folder with some room"),
        (r"ModuleNotFoundError: No module named '([^']+)'", NotSupported, "Python has no {0}", EXTRA_HINT),
    )
)  # fmt: skip
_JAVA_CAUSE = re.compile(
    r"^(?:Caused by: |: |Exception in thread \S+ )?([\w.$]+(?:Exception|Error)): (.+)$", re.MULTILINE
)
_MAX_MESSAGE = 300


def explain(text: str, *, fallback: str, log: str = "") -> KctlError:
    """The error that `text` (an exception's) or `log` (its end) speaks of; else `fallback` with the last cause."""
    for source in (text, log):
        for pattern, error, message, hint in _RULES:
            match = pattern.search(source)
            if match:
                return error(message.format(*match.groups()), hint=hint)
    causes = _JAVA_CAUSE.findall(text) or _JAVA_CAUSE.findall(log)
    messages = causes[-1][1] if causes else text.partition("\n")[0]  # pyspark's own exceptions begin with what is wrong
    cause = f": {messages.strip()[:_MAX_MESSAGE]}" if messages.strip() else ""
    return OperationFailed(f"{fallback}{cause}", hint="run it again with -v to see Spark's log")


def died(returncode: int, log: str) -> KctlError:
    """Why the JVM is gone."""
    how = f"was killed by signal {-returncode}" if returncode < 0 else f"ended with exit code {returncode}"
    return explain(log, fallback=f"Spark's JVM {how}")


@contextmanager
def told(log: Callable[[], str]) -> Iterator[None]:
    """Turn what pyspark and py4j raise inside the block into KctlError. log: gives the end of Spark's log."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as exc:
        raise explain(_text(exc), fallback="the Spark job failed", log=log()) from exc


def _text(exc: Exception) -> str:
    """An exception's text; pyspark's are asked of the JVM, which may be gone."""
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - py4j's own errors, or an assertion
        return type(exc).__name__
