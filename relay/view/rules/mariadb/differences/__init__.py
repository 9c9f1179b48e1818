"""Values that MySQL computes, converts or sorts differently than MariaDB, without an error: as seen on real servers of both."""
