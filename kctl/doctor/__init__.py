"""The doctor: rules by subject, the facts that they judge, and one report."""
