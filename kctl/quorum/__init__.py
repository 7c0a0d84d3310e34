"""Changes to the voters of the metadata quorum (KIP-853)."""
