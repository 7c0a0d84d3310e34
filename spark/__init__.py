"""PySpark jobs and data sources. Imported as kctl.spark; nothing here is imported by the library.

settings, java_command, gateway, class_archive, session: a Spark driver that is quiet, starts fast and leaves no
process behind. task_source: what all sources are to Spark. planning, reading, sources: what a cluster knows, as Spark
data sources. columns, retention_job: the rules of kctl.lag over columns. windows, window_rules, column_arrays: groups
over time, with numpy;
snapshot_ranges, snapshot_source: the same over a store of snapshots. lag_planning, live_pass, lag_source, lag_rows,
spans, lag_report: `kctl spark lag`. offsets_columns, offsets_effects, offsets_history, commit_times: when offsets
were committed, from the log of __consumer_offsets; offsets_source, segments_source: logs' files as data sources.
bundle, submit, submitted: executors' archive, and kctl under spark-submit. Only the sources, columns and the jobs
import pyspark at the top.
"""
