"""What people and monitors ask of the running relay, answered with what is true of it."""
