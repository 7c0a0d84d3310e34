"""The rules for lag and growth, applied to numpy columns, with or without Spark."""
