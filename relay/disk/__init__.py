"""The only place where files and directories are created, changed and opened: it sets their modes, and no link leads out."""
