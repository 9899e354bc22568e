"""Remedies: changes that might get a guest its unit, each with the case as it would be then.

`relaxing` tries them. They come as alternatives, the smallest first: what helps with less is not
told with more. What the owner of the pod can do comes first, then what time does, then what is for
the owner of the Machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.machines.explaining.cases import GuestCase
from dovetail.machines.explaining.judging import Judgement
from dovetail.machines.explaining.remedies.by_waiting import waiting_remedies
from dovetail.machines.explaining.remedies.of_machine import machine_remedies
from dovetail.machines.explaining.remedies.of_pod import pod_remedies
from dovetail.machines.explaining.remedies.remedy import Remedy


def remedies_for(case: GuestCase, found: Judgement) -> Iterator[list[Remedy]]:
    """Those that concern what is in its way, and other types that are as large."""
    for each in (pod_remedies, waiting_remedies, machine_remedies):
        yield from filter(None, each(case, found))
