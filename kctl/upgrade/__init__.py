"""Upgrades of clusters that kctl set up: to another release node by node, and back until the upgrade is finalized."""
