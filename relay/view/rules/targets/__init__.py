"""Groups of a newer MySQL made fit for an older one: what it cannot read is taken away or translated, or stops the view by name."""
