"""Bad input: whatever is sent, the server answers with a reason and keeps its state."""
