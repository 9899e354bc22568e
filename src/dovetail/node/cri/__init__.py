"""The CRI client: sees what runs and updates it."""
