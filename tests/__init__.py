"""The tests mirror the packages; other projects' suites and long runs have their own folders."""
