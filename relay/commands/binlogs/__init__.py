"""Commands about binlogs that are named on the command line, whoever wrote them."""
