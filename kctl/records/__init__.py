"""Consuming and producing of records."""
