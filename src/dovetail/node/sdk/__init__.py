"""To write a resource plugin: what it answers, how it is served, and how it keeps its state."""
