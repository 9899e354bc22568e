"""The description of the whole server in OpenAPI 3.1, made from the tables that it works by."""
