"""kctl acl: access control lists."""
