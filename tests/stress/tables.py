"""The last audit, below the API: sums kept in the tables against the rows that they repeat."""

from __future__ import annotations

from tests.support import databases

CHECKS = {
    "used is not the sum of the allocations": """
        SELECT i.provider_id, i.class_id, i.used, a.total
        FROM inventories i LEFT JOIN (
            SELECT provider_id, class_id, SUM(used) AS total
            FROM allocations GROUP BY provider_id, class_id
        ) a ON a.provider_id = i.provider_id AND a.class_id = i.class_id
        WHERE i.used <> COALESCE(a.total, 0)""",
    "used above capacity": """
        SELECT provider_id, class_id, used FROM inventories
        WHERE used > (total - reserved) * allocation_ratio""",
    "allocated from an inventory that is not there": """
        SELECT a.* FROM allocations a LEFT JOIN inventories i
        ON i.provider_id = a.provider_id AND i.class_id = a.class_id
        WHERE i.provider_id IS NULL""",
    "allocated to a consumer that is not there": """
        SELECT a.* FROM allocations a LEFT JOIN consumers c ON c.id = a.consumer_id
        WHERE c.id IS NULL""",
    "consumers with nothing": """
        SELECT c.* FROM consumers c LEFT JOIN allocations a ON a.consumer_id = c.id
        WHERE a.consumer_id IS NULL""",
    "consumers never written": "SELECT * FROM consumers WHERE generation < 1",
}


def inspect(database: str) -> list[str]:
    """The faults found in the tables, in words."""
    with databases.connected(database) as connection:
        rows = {what: connection.execute(query).fetchall() for what, query in CHECKS.items()}
    return [f"{what}: {found}" for what, found in rows.items() if found]
