"""What servers of two versions compute differently, as real servers of both were seen to do it."""
