"""Topics: describe, list, create, change, delete and clone them; elect their leaders."""
