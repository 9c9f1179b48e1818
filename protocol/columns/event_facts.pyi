# Used by other kernel modules only.
