"""Reports of audits and of the feed: one HTML page that needs nothing else, no network and no script."""
