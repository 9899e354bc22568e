"""Makes an empty PostgreSQL database and prints its URL; called by the serve script.

The one argument is the URL of a database that may be connected to. The new database stays
behind: point this at a PostgreSQL server that is thrown away afterwards.
"""

import sys
import uuid
from urllib.parse import urlsplit

import psycopg
from psycopg import sql


def create(base: str) -> str:
    name = f"dovetail_conformance_{uuid.uuid4().hex}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    # Put together by hand: urlunsplit drops the slashes of an empty host (a unix socket).
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")


if __name__ == "__main__":
    print(create(sys.argv[1]))
