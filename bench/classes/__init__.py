"""Times resource classes."""
