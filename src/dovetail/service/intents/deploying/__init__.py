"""Deployments brought about: what users ask for is recorded, and a worker carries it out.

transitions     approve, instantiate, update, terminate: one transaction each
outbox          what the worker takes from the ledger, and how it records what it did
worker          attends to all deployments, each when it is due
steps           what is done about one deployment on its clusters, in crash-safe steps
cluster_port    what is asked of clusters; `kube/deploy` implements it
acting          action controllers, called around a deployment
"""
