"""PySpark: sessions, data sources and jobs. Imported as kctl.spark; the library never imports it.

settings, java_command, gateway, class_archive, session, scratch, watching, failures: a quiet Spark driver that starts
fast and leaves no process behind. submit, submitted: kctl under spark-submit. bundle: the archive for executors.
task_source: common base of the sources. lag_source, report_source, snapshot_source, size_source, rollup_job,
store_reads: the readers of kctl.history in Spark's tasks. sources, columns, retention_job: the retention report of a
live cluster. offsets_source, segments_source: log files as data sources. parquet: results written by Spark.
"""
