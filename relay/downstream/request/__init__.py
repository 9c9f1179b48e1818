"""What a replica requested and reported before its stream, and the words of a refusal."""
