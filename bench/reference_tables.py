"""Fills the reference's tables with the fleet, in one transaction instead of 40 calls for a host.

Placement on SQLite takes tens of milliseconds for a call, and writers lock each other out: loading
1,000 hosts call by call takes it from ten minutes to an hour. What `fill` writes is what those
calls write; `bench.compare` finds no difference between the answers to both.
"""

import datetime
import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

from . import fleet
from .fleet import Consumer, Host

Ids = dict[str, int]

MAX_UNIT = 2**31 - 1


def fill(database: Path, hosts: int) -> None:
    """The database has the tables, and in them standard classes and traits, but no providers."""
    with closing(sqlite3.connect(database)) as connection, connection:
        _Filling(connection).fill(hosts)


class _Filling:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        now = datetime.datetime.now(datetime.UTC)
        self._now = now.replace(tzinfo=None).isoformat(" ", "microseconds")
        self._provider_ids, self._consumer_ids = itertools.count(1), itertools.count(1)
        self._ids: Ids = {}
        """Of providers, by uuid."""

    def fill(self, hosts: int) -> None:
        for trait in fleet.CUSTOM_TRAITS:
            self._insert("traits", name=trait)
        self._insert("projects", id=1, external_id=fleet.PROJECT)
        self._insert("users", id=1, external_id=fleet.USER)
        self._insert("consumer_types", id=1, name=fleet.CONSUMER_TYPE)
        classes, traits = self._named("resource_classes"), self._named("traits")
        for host in fleet.generate(hosts):
            self._put_host(host, classes, traits)

    def _named(self, table: str) -> Ids:
        return dict(self._connection.execute(f"SELECT name, id FROM {table}"))

    def _insert(self, table: str, **values: object) -> None:
        columns = ", ".join(values)
        marks = ", ".join("?" * len(values))
        self._connection.execute(
            f"INSERT INTO {table} (created_at, {columns}) VALUES (?, {marks})",
            (self._now, *values.values()),
        )

    def _put_host(self, host: Host, classes: Ids, traits: Ids) -> None:
        root_id = None
        for provider in host.providers:
            id_ = self._ids[provider.uuid] = next(self._provider_ids)
            root_id = root_id or id_
            self._insert(
                "resource_providers",
                id=id_,
                uuid=provider.uuid,
                name=provider.name,
                generation=bool(provider.inventories) + bool(provider.traits),
                root_provider_id=root_id,
                parent_provider_id=provider.parent and self._ids[provider.parent],
            )
            for name, total in provider.inventories.items():
                self._insert(
                    "inventories",
                    resource_provider_id=id_,
                    resource_class_id=classes[name],
                    total=total,
                    reserved=0,
                    min_unit=1,
                    max_unit=MAX_UNIT,
                    step_size=1,
                    allocation_ratio=1.0,
                )
            for name in provider.traits:
                self._insert(
                    "resource_provider_traits", trait_id=traits[name], resource_provider_id=id_
                )
        for consumer in host.consumers:
            self._put_consumer(consumer, classes)

    def _put_consumer(self, consumer: Consumer, classes: Ids) -> None:
        self._insert(
            "consumers",
            id=next(self._consumer_ids),
            uuid=consumer.uuid,
            project_id=1,
            user_id=1,
            generation=1,
            consumer_type_id=1,
        )
        for uuid, resources in consumer.allocations.items():
            for name, amount in resources.items():
                self._insert(
                    "allocations",
                    resource_provider_id=self._ids[uuid],
                    consumer_id=consumer.uuid,
                    resource_class_id=classes[name],
                    used=amount,
                )
