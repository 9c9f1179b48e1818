"""The numbers that the modules of the columns share."""
