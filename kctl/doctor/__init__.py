"""The doctor: facts of a cluster or of files in few requests, the rules of kctl.health over them, one report."""
