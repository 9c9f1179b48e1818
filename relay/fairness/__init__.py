"""Who gets what there is not enough of: connections and threads, by account and address."""
