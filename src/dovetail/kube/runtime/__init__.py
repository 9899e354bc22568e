"""The level-triggered runtime of all controllers: informers, work queue, leader, events."""
