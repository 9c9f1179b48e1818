"""Commands about binlogs that are named on the command line, of any origin."""
