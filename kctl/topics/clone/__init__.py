"""A new topic like another one, with its records if requested."""
