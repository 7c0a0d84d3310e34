"""Cluster state: topics, configs, groups, offsets, log dirs and the quorum. Read-only."""
