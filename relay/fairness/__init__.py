"""The sharing of scarce resources: connections and threads, by account and address."""
