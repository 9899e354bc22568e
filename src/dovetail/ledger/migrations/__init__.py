"""One migration history for both databases, run by Alembic."""
