"""What the agent remembers of pods, and its crash-safe way to the disk."""
