"""An archive, inspected without the relay that writes it, and the scrub: its contents, their soundness, the place of a transaction."""
