"""An archive, inspected without the relay that writes it, and the scrub: what is there, is it sound, where is a transaction."""
