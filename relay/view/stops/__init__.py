"""Why views stop: every reason with its words, a replica's error number and the ways on; and the record of a stop."""
