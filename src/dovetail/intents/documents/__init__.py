"""What users write about intents: kinds of documents, in every spelling, checked, in one form.

shapes       what a value may look like: read into the canonical form, and described as schema
kinds        the registry: every kind with its path, its parent, its shape and its references
(others)     the shapes of kinds that belong together, a module each
"""
