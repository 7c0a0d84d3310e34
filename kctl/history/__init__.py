"""Judgement over time: lag, retention and disks by snapshots, forecasts, roll-ups and reports."""
