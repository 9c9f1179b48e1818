"""The source's tables as they were from one position to the next: asked, noticed in the stream, kept beside the archive."""
