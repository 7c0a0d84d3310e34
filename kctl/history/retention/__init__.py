"""Retention reports: disk usage of logs, forecasts, and lost messages."""
