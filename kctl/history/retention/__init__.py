"""The retention reports: what logs take on the disks, what becomes of it, and who loses by it."""
