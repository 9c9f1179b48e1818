"""`binlog-relay compare`: whether the tables of a new server are those of the source, by SELECT only and while both are written to."""
