"""The Spark reader's compiled part: runs of events become columns of numbers and text."""
