"""Files in object storage: S3 and what speaks like it, Google's, Azure's; a directory for tests."""
