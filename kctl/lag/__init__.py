"""Consumer lag: pure rules, and one batched pass over a cluster."""
