"""What the shipped plugins share: roles, requests, holdings, serving, state on disk."""
