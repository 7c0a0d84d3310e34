"""Reading a cluster's state: topics, configs, groups, offsets, log dirs, the quorum. Changes nothing."""
