"""The tour of docs/node-agent.md, played on the demo node.

`python -m tests.node.tour` writes what the commands print now into the page.
"""

from __future__ import annotations

import asyncio
import os
import re

from tests.node.agent.rig import Rig
from tests.node.demo import ROLES, a_demo_node
from tests.support.page import BLOCK, indented
from tests.support.paths import DOVETAIL, ROOT

PAGE = ROOT / "docs/node-agent.md"
TOUR = re.compile(r"(?<=<!-- tour: begin -->\n).*(?=<!-- tour: end -->)", re.DOTALL)
PLACE = "/tmp/demo"
"""How the page calls the directory of the node."""


async def played() -> str:
    """The page with what the commands of the tour print now."""
    page = PAGE.read_text(encoding="utf-8")
    found = TOUR.search(page)
    assert found, "the page has a tour"
    async with a_demo_node() as rig:
        parts, at = [], 0
        for block in BLOCK.finditer(found[0]):
            printed = ROLES if block[1] == "cat roles.toml" else await run(rig, block[1])
            parts += [found[0][at : block.start()], f"    $ {block[1]}\n", indented(printed)]
            at = block.end()
    return page[: found.start()] + "".join(parts) + found[0][at:] + page[found.end() :]


async def run(rig: Rig, line: str) -> str:
    path = f"{DOVETAIL.parent}:{os.environ['PATH']}"
    running = await asyncio.create_subprocess_shell(
        line,
        cwd=rig.directory,
        env={**os.environ, "PATH": path, "DOVETAIL_AGENT_CONTROL_SOCKET": str(rig.control)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await running.communicate()
    return output.decode().replace(str(rig.directory), PLACE)


if __name__ == "__main__":
    PAGE.write_text(asyncio.run(played()), encoding="utf-8")
