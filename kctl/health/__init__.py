"""What is healthy: one rule for each thing that can be wrong, pure, and what reads the facts that they judge."""
