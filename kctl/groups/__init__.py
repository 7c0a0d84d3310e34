"""Consumer groups: changes to committed offsets and members, deletion, and groups as rows."""
