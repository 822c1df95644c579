"""Facts: what code computes from evidence for a case, and which units of the evidence decide."""
