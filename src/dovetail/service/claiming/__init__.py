"""Claims of the best place: which candidate is taken, and what claims under way count for."""
