"""Views of the whole fleet: the map, hosts, holders, machines; what the console looks at."""
