"""Values of a row image become the text that a client would show."""
