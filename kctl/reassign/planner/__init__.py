"""From a cluster's state and goals to the smallest plan. Pure."""
