"""Long documents in pieces: read, checked, written and sent while others are served."""
