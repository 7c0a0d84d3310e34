"""Access control: ACLs, SCRAM users and client quotas."""
