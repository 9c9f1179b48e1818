"""Files and directories are made, changed and opened here, and nowhere else: which modes they get, and that no link leads out."""
