"""Consumer lag: the rules (pure), and one batched pass over a cluster."""
