"""The way out: open files, the offsets up to which they may be read, and the sound positions."""
