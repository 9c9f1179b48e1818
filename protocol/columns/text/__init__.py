"""Values as they stand in a row image become the text that a client would show."""
