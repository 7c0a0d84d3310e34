"""Named clusters: the config file, the choice of a cluster for a command, imports from other tools."""
