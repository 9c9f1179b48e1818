"""The queries of people and monitors to the running relay, and their answers."""
