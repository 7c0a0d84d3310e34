"""Groups as described by coordinators: members, assignments, newer protocols."""
