"""Topics: names, listing, describing, creating, deleting."""
