"""The config files of a cluster that kctl sets up, and the settings that go into them."""
