"""The stops of views: every reason with its text, a replica's error number and the ways to continue; and the record of a stop."""
