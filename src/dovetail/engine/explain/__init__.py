"""Says why: what each constraint leaves over, what a host lacks, which change would help.

Nothing of this runs unless somebody asks. What may take long is a generator (`Work`) that yields
now and then, so that a caller can look at the clock, and returns its result.
"""

from dovetail.engine.explain.fits import Work, any_fits, fitting, how_many
from dovetail.engine.explain.funnel import Step, funnel
from dovetail.engine.explain.host import Finding, findings
from dovetail.engine.explain.nearest import nearest
from dovetail.engine.explain.relax import Relaxation, relaxations

__all__ = [
    "Finding",
    "Relaxation",
    "Step",
    "Work",
    "any_fits",
    "findings",
    "fitting",
    "funnel",
    "how_many",
    "nearest",
    "relaxations",
]
