"""Machines on a real cluster: API server, controllers, scheduler, kwok, and operators."""
