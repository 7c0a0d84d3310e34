"""kctl segment: log files."""
