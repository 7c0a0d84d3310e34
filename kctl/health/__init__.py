"""Health: one pure rule for each problem, and the collection of the facts."""
