"""Lag, retention and disks over time: snapshots, forecasts, rollups and reports."""
