"""The demo fleet: a few dozen hosts to try things on."""

from __future__ import annotations

from importlib import resources

from dovetail.core.fleet import FleetReader
from dovetail.ledger import Transaction, fleet

WELCOME = """
Dovetail serves a demo fleet at {address}
(36 NUMA hosts with GPUs, FPGAs and SR-IOV NICs, two sharing storage pools; no credentials needed)

Try, in another terminal:

  # Where do 8 VCPUs, 16 GiB and an FPGA of the same NUMA node fit? Show three places.
  curl -s -H 'x-auth-token: admin' -H 'openstack-api-version: placement 1.39' \\
    '{address}/allocation_candidates?resources_VM=VCPU:8,MEMORY_MB:16384&resources_ACC=FPGA:1&same_subtree=_VM,_ACC&limit=3'

  # Two VFs of one NIC, one on each physical network, and 100 GB of disk, local or shared.
  curl -s -H 'x-auth-token: admin' -H 'openstack-api-version: placement 1.39' \\
    '{address}/allocation_candidates?resources=DISK_GB:100&resources_A=SRIOV_NET_VF:1&required_A=CUSTOM_PHYSNET_A&resources_B=SRIOV_NET_VF:1&required_B=CUSTOM_PHYSNET_B&required_NIC=CUSTOM_NIC&same_subtree=_A,_B,_NIC&limit=2'

  # What the first host is made of.
  curl -s -H 'x-auth-token: admin' -H 'openstack-api-version: placement 1.39' \\
    '{address}/resource_providers?name=rack1-host1'

Logs follow, one JSON object a line. Stop with Ctrl-C.
"""


def fill_if_empty(tx: Transaction) -> None:
    if tx.row("SELECT 1 FROM providers LIMIT 1"):
        return
    reader = FleetReader()
    reader.feed((resources.files("dovetail.cli") / "demo_fleet.jsonl").read_bytes())
    fleet.load(tx, reader.finish())


def welcome(address: str) -> str:
    return WELCOME.format(address=address)
