"""Serves the real OpenStack Placement on loopback: the side Dovetail is compared with.

Run by the interpreter of .venv-reference, never imported. Requests are answered one at a time, from
one SQLite file, with the noauth2 strategy and the policy defaults Placement's own tests use.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

SETTINGS = """\
[DEFAULT]
use_stderr = false
log_file = {folder}/placement.log
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{folder}/placement.db
sync_on_startup = true
sqlite_synchronous = false
[oslo_policy]
enforce_new_defaults = false
policy_file = {folder}/policy.yaml
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where the database goes")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    (folder / "placement.conf").write_text(SETTINGS.format(folder=folder))
    (folder / "policy.yaml").write_text("{}\n")
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = str(folder)
    del sys.argv[1:]  # oslo.config would take the rest for its own

    import waitress  # type: ignore[import-untyped]
    from placement import wsgi

    application = wsgi.init_application()
    waitress.serve(application, host="127.0.0.1", port=arguments.port, threads=1, ident=None)


if __name__ == "__main__":
    main()
