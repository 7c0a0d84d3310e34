"""Records in and out of topics, one by one: producing lines, consuming."""
