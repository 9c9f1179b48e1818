"""The requests and reports of a replica before its stream, and the texts of a refusal."""
