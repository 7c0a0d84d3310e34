"""The class archive of Spark (kctl.deploy.runtime.class_archive) for one Java and one pyspark."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from kctl.base import paths
from kctl.deploy.runtime.class_archive import ClassArchive, archives_for
from kctl.deploy.runtime.java import Java
from kctl.spark.java_command import pyspark_home


def spark_version() -> str:
    """Return the version of the installed pyspark."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "unknown"


def class_archive(java: Java) -> ClassArchive:
    """Return the archive for `java` and the installed pyspark. Raises NotSupported if pyspark is not installed."""
    jars = (pyspark_home() / "jars").iterdir()
    (archive,) = archives_for(paths.cache_dir() / "spark", [f"spark-{spark_version()}"], java, jars)
    return archive
