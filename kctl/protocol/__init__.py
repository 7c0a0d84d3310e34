"""Connections to brokers: security, preflight, requests and their errors."""
