"""Hardware intents over many clusters: which clusters can take an application, which it gets, why.

Pure: no client, no clock, no SQL. `service/intents` gathers what a plan is made of and carries it
out. The parts, as a plan passes them:

    documents/    what users write, in both spellings; checked, in one canonical form
    group         what one deployment intent group asks for, typed
    fleet         what registered clusters have, and how old that is
    manifests/    an app's objects: which pods they make, and how an intent edits them
    hpa/          node-level truth: which sets of apps a cluster takes, with which optional hardware
    candidates/   partition candidates: compact sets of clusters, combined; one pick of them
"""
