"""Statistics of logs."""
