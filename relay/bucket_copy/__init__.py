"""The contents of a bucket's copy of an archive, and what binds them: parts, notes, small files, and the manifest that lists them."""
