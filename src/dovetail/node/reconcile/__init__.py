"""Keeps running containers as the plugins want them, and forgets pods and plugins that went."""
