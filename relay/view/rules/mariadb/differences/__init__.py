"""What MySQL computes, converts or sorts otherwise than MariaDB, without an error: as seen on real servers of both."""
