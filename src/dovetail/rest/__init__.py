"""The HTTP edge: doors (APIs) mounted on one server. Rules live below, in `service`."""
