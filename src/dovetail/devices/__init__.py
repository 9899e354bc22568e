"""Resource classes: devices chosen by their properties, and counted. Pure: no I/O, no clock."""
