"""kctl quota: client quotas."""
