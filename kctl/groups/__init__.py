"""Changes of consumer groups: committed offsets, members, deletion; and groups as rows."""
