"""Reports of audits and of the feed: one self-contained HTML page, without network access and scripts."""
