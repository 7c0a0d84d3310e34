"""Snapshots of a cluster over time: collected into a store of Parquet files, compacted, expired, and read back."""
