"""Use cases of hardware intents: keep documents, plan, deploy, follow clusters, ask controllers."""
