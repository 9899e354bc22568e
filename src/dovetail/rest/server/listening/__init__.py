"""What uvicorn listens with: bounded HTTP, and TLS whose certificates may be replaced."""
