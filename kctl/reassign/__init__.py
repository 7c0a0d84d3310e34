"""Planning of partition reassignments: pure functions from a cluster's state and goals to the smallest plan."""
