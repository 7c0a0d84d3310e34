"""Groups as coordinators describe them: members, assignments, newer protocols."""
