"""The compiled part: runs of bytes in, runs and facts out."""
