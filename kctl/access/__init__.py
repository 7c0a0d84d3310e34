"""Who may do what: ACLs, SCRAM users and client quotas."""
