"""A placement controller: apps stay in the region that their group's intent names.

Clusters in other regions are refused, with the reason that users see. Of those that are left, one
that runs on renewable power is worth five points. An intent that no cluster's region matches is a
mistake, and is told as one.
"""

import sys

from dovetail.service.intents.controllers.contracts.placement import CandidatesRequest
from dovetail.service.intents.controllers.sdk import CandidatesAnswer, run

REGION = "region-"
GREEN = "renewable"


def candidates(question: CandidatesRequest) -> CandidatesAnswer:
    wanted = f"{REGION}{question.intent}"
    if not any(wanted in cluster.labels for cluster in question.clusters):
        raise ValueError(f"no cluster has the label {wanted}")
    answer = CandidatesAnswer()
    for app in question.apps:
        for cluster in question.clusters:
            if wanted not in cluster.labels:
                regions = [label for label in cluster.labels if label.startswith(REGION)]
                where = ", ".join(regions) or "no region"
                answer.refuse(app.name, cluster.name, f"it is in {where}, not in {wanted}")
            elif GREEN in cluster.labels:
                answer.score(app.name, cluster.name, 5)
    return answer


if __name__ == "__main__":
    run(candidates, port=int(sys.argv[1]))
