"""The demo fleet of `dovetail serve --demo`: a few dozen hosts to try things on."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from dovetail.core.fleet import FleetReader
from dovetail.ledger import Transaction, providers
from dovetail.ledger.bulk import fleet

WELCOME = """
Dovetail's console: {address}/console

It shows a demo fleet, which is served at {address}
(36 NUMA hosts with GPUs, FPGAs and SR-IOV NICs, two sharing storage pools; no credentials needed)

Try, in another terminal:

  export PATH={commands}:$PATH DOVETAIL_SERVER={address} DOVETAIL_TOKEN=admin

  # Where do 8 VCPUs, 16 GiB and an FPGA of the same NUMA node fit? Show three places.
  dovetail candidates -g VM=VCPU:8,MEMORY_MB:16384 -g ACC=FPGA:1 --same-subtree VM,ACC --limit 3

  # Two VFs of one NIC, one on each physical network, and 100 GB of disk, local or shared.
  dovetail candidates -r DISK_GB:100 -g A=SRIOV_NET_VF:1,CUSTOM_PHYSNET_A \\
    -g B=SRIOV_NET_VF:1,CUSTOM_PHYSNET_B -g NIC=CUSTOM_NIC --same-subtree A,B,NIC --limit 2

  # Why do 64 VCPUs and an FPGA of the same NUMA node not fit, and what would help?
  dovetail explain -g VM=VCPU:64 -g ACC=FPGA:1 --same-subtree VM,ACC

  # What the first host is made of, and how full the fleet is.
  dovetail tree rack1-host1
  dovetail usage

  # The same question over HTTP: it is OpenStack Placement's API.
  curl -s -H 'x-auth-token: admin' -H 'openstack-api-version: placement 1.39' \\
    '{address}/allocation_candidates?resources_VM=VCPU:8&resources_ACC=FPGA:1&same_subtree=_VM,_ACC&limit=3'

Logs follow, one JSON object a line. Stop with Ctrl-C.
"""


def fill_if_empty(tx: Transaction) -> None:
    if not providers.is_empty(tx):
        return
    reader = FleetReader()
    reader.feed((resources.files("dovetail.cli.run") / "demo_fleet.jsonl").read_bytes())
    fleet.load(tx, reader.finish())


def welcome(address: str) -> str:
    return WELCOME.format(address=address, commands=Path(sys.executable).parent)
