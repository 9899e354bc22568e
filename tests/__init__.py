"""The tests mirror the packages; suites of other projects and long runs have folders of their own."""
