"""The lag report: its query, its reads, and its rows."""
