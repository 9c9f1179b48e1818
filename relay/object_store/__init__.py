"""Files in object storage: S3 and compatible ones, Google's, Azure's; a directory for tests."""
