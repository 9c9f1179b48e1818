"""Reports of audits: one HTML page that needs nothing else, no network and no script."""
