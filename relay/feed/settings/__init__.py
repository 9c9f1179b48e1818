"""What the settings say: which tables are fed, and how."""
