"""Explains a request: what each constraint leaves over, what a host lacks, what would help.

`service/explanations` calls it; nothing of this runs unless somebody asks. What may take long is a
generator (`Work`) that yields now and then, so that a caller can look at the clock, and returns its
result. `Diagnosis` collects the results and makes a `core.explanation.Explanation` of them.
"""

from dovetail.engine.explain.diagnosis import Diagnosis, Names
from dovetail.engine.explain.fit_test.fits import Work, any_fits, fitting, how_many
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.funnel import funnel
from dovetail.engine.explain.host import HostFindings, findings, host_findings
from dovetail.engine.explain.nearest import nearest
from dovetail.engine.explain.relax import RelaxedRequest, relaxations, relaxations_in

__all__ = [
    "Diagnosis",
    "FleetProblem",
    "HostFindings",
    "Names",
    "RelaxedRequest",
    "Work",
    "any_fits",
    "findings",
    "fitting",
    "funnel",
    "host_findings",
    "how_many",
    "nearest",
    "relaxations",
    "relaxations_in",
]
