"""Tables of Delta and Iceberg, with the place up to which they were fed in each of their commits."""
