"""The views as pages, a module each: HTML from what the API answers whoever reads it."""
