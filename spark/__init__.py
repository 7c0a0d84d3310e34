"""PySpark jobs and data sources. Imported as kctl.spark; nothing here is imported by the library.

settings, java_command, gateway, class_archive, session: a Spark driver that is quiet, starts fast and leaves no
process behind. planning, reading, sources: what a cluster knows, as Spark data sources. columns, lag_job,
retention_job: the rules of kctl.lag over columns. Only sources, columns and the jobs import pyspark at the top.
"""
