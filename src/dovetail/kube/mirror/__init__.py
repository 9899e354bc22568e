"""Mirror: registered clusters followed by watches, and kept in the ledger as they are.

From the top: `mirror` (all registered clusters, as they come and go), `follower` (one cluster: its
informers, its batches, whether it answers), `cpu_policies` (which nodes pin CPUs), `snapshots` (a
posted snapshot in place of all this), `observation` (what is known of a cluster; no I/O),
`resource_claims` (who has which device of a DRA driver). One process runs it at a time, by a lease.
"""
