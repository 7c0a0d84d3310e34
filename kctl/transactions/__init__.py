"""Transactions: coordinators' view of them, partitions' view of producers, and what hangs between the two."""
