"""A map of the fleet for people: every host and its units in columns, kept true while somebody
looks."""
