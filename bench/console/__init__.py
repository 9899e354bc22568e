"""Times the console: what a browser takes to paint, what open consoles cost the server."""
