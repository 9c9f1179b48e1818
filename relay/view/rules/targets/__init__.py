"""Groups of a newer MySQL are made fit for an older one: what it cannot read is removed, translated, or stops the view by name."""
