"""Which files and parts of files a query reads."""
