"""kctl history: lag, disks and trends over time, from a snapshot store."""
