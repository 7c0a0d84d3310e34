"""Logs: log dirs, partitions, segments, and iteration over batches."""
