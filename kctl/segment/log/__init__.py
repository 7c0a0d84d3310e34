"""From files to logs: log dirs, partitions, segments, and the walk from batch to batch."""
