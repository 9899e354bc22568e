"""Settings of daemons: declared as structs, given by file, environment and flags.

`declaration` turns the fields of a struct into settings with their names, `values` checks single
values, `layers` puts the values of file, environment and flags together, `listening` binds the
address that was set. The structs themselves stand beside the code that they are about.
"""
