"""Questions of an operator: what is there, is it sound, where is a transaction."""
