"""The durable truth: what hardware there is and who holds it, in SQL.

`open_ledger(url)` gives a Ledger; the modules named by nouns hold the operations, each a function
of a transaction. Only this package speaks to a database driver.
"""

from dovetail.ledger.database.opening import open_ledger, opened
from dovetail.ledger.database.protocol import (
    Change,
    Cursor,
    Delta,
    Ledger,
    LedgerBusy,
    OutcomeUnknown,
    Transaction,
)

__all__ = [
    "Change",
    "Cursor",
    "Delta",
    "Ledger",
    "LedgerBusy",
    "OutcomeUnknown",
    "Transaction",
    "open_ledger",
    "opened",
]
