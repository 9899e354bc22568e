"""Other projects' tests against Dovetail; run by the interpreter of .venv-reference."""
