"""The API server's calls: the port, and the HTTP/1.1 client behind it."""
