"""The console: a door of pages for people, and a passage for those pages to all other doors."""
