"""Upgrades of clusters that kctl set up: node by node to another release, and back until they are finalized."""
