"""The Kubernetes edge: the client behind a port, a level-triggered runtime, and the controllers.

The controllers on that runtime are the scheduler, the extender and the class controller.
"""
