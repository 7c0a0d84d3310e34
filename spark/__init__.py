"""PySpark jobs and data sources. Imported as kctl.spark; nothing here is imported by the library.

settings, java_command, gateway, class_archive, session: a Spark driver that is quiet, starts fast and leaves no
process behind. planning, reading, sources: what a cluster knows, as Spark data sources. columns, lag_job,
retention_job: the rules of kctl.lag over columns. windows, window_rules, column_arrays: groups over time, with numpy;
snapshot_ranges, snapshot_source: the same over a store of snapshots. Only the sources, columns and the jobs import
pyspark at the top.
"""
