"""Topics: described, listed, created, changed, deleted, copied; and elections of their leaders."""
