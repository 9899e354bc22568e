"""The `dovetail` command: each verb parses, calls a service or the server, prints."""
