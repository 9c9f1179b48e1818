"""What a replica asked and told before its stream, and the words of a refusal."""
