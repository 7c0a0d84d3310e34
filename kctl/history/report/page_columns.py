"""The columns of the tables of the page. A key is a field of a row, or is computed in page_tables."""

from __future__ import annotations

from kctl.history.report.page_cells import PageColumn

GROUPS = (
    PageColumn("group", "GROUP", "text"),
    PageColumn("status", "STATUS", "status"),
    PageColumn("lag", "LAG", "count"),
    PageColumn("lag_over_time", "LAG OVER TIME", "spark"),
    PageColumn("time_lag_ms", "TIME LAG", "duration", least="time_lag_at_least_ms"),
    PageColumn("lost", "LOST", "count"),
    PageColumn("loss_ms", "LOSES IN", "eta"),
    PageColumn("catch_up_ms", "CATCHES UP IN", "duration"),
    PageColumn("state", "STATE", "plain"),
    PageColumn("consumed_per_s", "CONSUMED", "rate"),
    PageColumn("produced_per_s", "PRODUCED", "rate"),
    PageColumn("worst_status", "WORST", "status", minor=True),
    PageColumn("deletion_ms", "DELETED IN", "eta", minor=True),
    PageColumn("topic_count", "TOPICS", "count", minor=True),
    PageColumn("partition_count", "PARTITIONS", "count", minor=True),
    PageColumn("last_commit", "LAST COMMIT", "time", minor=True),
    PageColumn("at", "READ AT", "time", minor=True),
)

PARTITIONS = (
    PageColumn("group", "GROUP", "text"),
    PageColumn("topic", "TOPIC", "text"),
    PageColumn("partition", "PART", "count"),
    PageColumn("status", "STATUS", "status"),
    PageColumn("lag", "LAG", "count"),
    PageColumn("time_lag_ms", "TIME LAG", "duration", least="time_lag_at_least_ms"),
    PageColumn("lost", "LOST", "count"),
    PageColumn("loss_ms", "LOSES IN", "eta"),
    PageColumn("catch_up_ms", "CATCHES UP IN", "duration"),
    PageColumn("consumed_per_s", "CONSUMED", "rate"),
    PageColumn("produced_per_s", "PRODUCED", "rate"),
    PageColumn("client_id", "CLIENT", "text"),
    PageColumn("host", "HOST", "text", minor=True),
    PageColumn("standing", "STANDING", "plain", minor=True),
    PageColumn("committed_offset", "COMMITTED", "count", minor=True),
    PageColumn("log_end_offset", "LOG END", "count", minor=True),
    PageColumn("deletion_by_time_ms", "DELETED BY TIME IN", "eta", minor=True),
    PageColumn("deletion_by_bytes_ms", "BY BYTES IN", "eta", minor=True),
    PageColumn("unchanged_ms", "UNCHANGED FOR", "duration", minor=True),
)

LOG_DIRS = (
    PageColumn("log_dir", "LOG DIR", "text"),
    PageColumn("broker", "BROKER", "count"),
    PageColumn("full_ms", "FULL IN", "eta", least="full_after_ms"),
    PageColumn("disk_used", "USED", "share"),
    PageColumn("usable_bytes", "FREE", "size"),
    PageColumn("total_bytes", "VOLUME", "size"),
    PageColumn("size_bytes", "SIZE", "size"),
    PageColumn("size_over_time", "SIZE OVER TIME", "spark"),
    PageColumn("growth_bytes_per_hour", "GROWTH", "growth"),
    PageColumn("filled_by", "FILLED BY", "text"),
    PageColumn("error", "ERROR", "text"),
    PageColumn("topic_count", "TOPICS", "count", minor=True),
    PageColumn("replica_count", "REPLICAS", "count", minor=True),
    PageColumn("growing_to_bytes", "GROWS TO", "size", minor=True),
)

LOSSES = (
    PageColumn("log_dir", "LOG DIR", "text"),
    PageColumn("broker", "BROKER", "count"),
    PageColumn("full_ms", "FULL IN", "eta"),
    PageColumn("group", "GROUP", "text"),
    PageColumn("partition_count", "PARTITIONS", "count"),
    PageColumn("unread", "UNREAD", "count"),
    PageColumn("sole", "ONLY HERE", "count"),
    PageColumn("deleted", "DELETED UNREAD", "count"),
    PageColumn("loss_ms", "LOSES IN", "eta"),
)

TOPICS = (
    PageColumn("topic", "TOPIC", "text"),
    PageColumn("replicas_bytes", "ALL REPLICAS", "size"),
    PageColumn("size_over_time", "SIZE OVER TIME", "spark"),
    PageColumn("growth_bytes_per_hour", "GROWTH", "growth"),
    PageColumn("ceiling_bytes", "GROWS TO", "size"),
    PageColumn("retention_ms", "RETENTION TIME", "limit"),
    PageColumn("retention_ms_used", "TIME USED", "share"),
    PageColumn("retention_bytes", "RETENTION BYTES", "bytes_limit"),
    PageColumn("retention_bytes_used", "BYTES USED", "share"),
    PageColumn("cleanup_policy", "POLICY", "plain"),
    PageColumn("partition_count", "PARTITIONS", "count", minor=True),
    PageColumn("replica_count", "REPLICAS", "count", minor=True),
    PageColumn("size_bytes", "SIZE", "size", minor=True),
    PageColumn("oldest_age_ms", "OLDEST", "duration", minor=True),
    PageColumn("skew", "SKEW", "ratio", minor=True),
    PageColumn("dirty_ratio_at_least", "DIRTY", "share", minor=True),
)
