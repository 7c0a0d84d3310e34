"""Consumer groups: listing, describing, and where their coordinators are."""
