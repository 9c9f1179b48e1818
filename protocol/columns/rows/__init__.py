"""Row events become one row for each changed row, with its images as JSON."""
