"""What the commands share: the client of the server, output, queries, names, exit codes."""
