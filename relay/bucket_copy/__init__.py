"""What a bucket's copy of an archive is made of, and what binds it: parts, notes, small files, and the manifest that lists them."""
