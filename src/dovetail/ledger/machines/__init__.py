"""Machines in the ledger: the stock of groups, the nodes of pools, and who holds which unit.

`service/machine_units` runs these operations for the operator. GPUs, CPUs and memory are taken of
the same inventories that every other client of the ledger claims from.
"""
