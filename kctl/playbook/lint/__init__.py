"""Problems of playbooks, found before anything runs."""
