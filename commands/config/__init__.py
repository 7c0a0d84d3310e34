"""kctl config: read, change and compare configs."""
