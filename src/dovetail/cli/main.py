"""One command, `dovetail`. Verbs are imported when they are used, so help is instant."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from dovetail import __version__
from dovetail.cli.support import exits


class Verb(NamedTuple):
    module: str
    attribute: str
    summary: str
    """The first sentence of its help, so that listing it needs no import."""


SECTIONS: dict[str, dict[str, Verb]] = {
    "Ask": {
        "candidates": Verb(
            "dovetail.cli.ask.candidates", "candidates", "Show where a request fits."
        ),
        "explain": Verb(
            "dovetail.cli.ask.explain", "explain", "Say why a request fits or does not."
        ),
        "whatif": Verb("dovetail.cli.ask.whatif", "whatif", "Ask about a fleet that might be."),
        "usage": Verb("dovetail.cli.ask.usage", "usage", "Show how full the fleet is."),
        "tree": Verb("dovetail.cli.fleet.tree", "tree", "Draw hosts with what they have and give."),
        "providers": Verb("dovetail.cli.fleet.providers", "providers", "List providers."),
        "traits": Verb("dovetail.cli.fleet.traits", "traits", "List traits."),
        "classes": Verb(
            "dovetail.cli.classes",
            "classes",
            "Show resource classes, which devices they select and why, and what is odd about them.",
        ),
        "machines": Verb(
            "dovetail.cli.machines",
            "machines",
            "Show machines of a Kubernetes cluster: what is sold, why guests wait, what would fit.",
        ),
        "intents": Verb(
            "dovetail.cli.intents",
            "intents",
            "Say what hardware an application needs, and see which clusters can take it.",
        ),
        "decisions": Verb(
            "dovetail.cli.ask.decisions", "decisions", "Show what was chosen, and why."
        ),
        "simulate": Verb(
            "dovetail.cli.run.simulate", "simulate", "Replay tasks on a fleet, to compare policies."
        ),
    },
    "Take": {
        "claim": Verb("dovetail.cli.ask.claim", "claim", "Find the best place and take it."),
        "release": Verb(
            "dovetail.cli.ask.release", "release", "Give back all that consumers hold."
        ),
    },
    "Keep": {
        "load": Verb("dovetail.cli.fleet.load", "load", "Add hosts and consumers of a fleet file."),
        "dump": Verb("dovetail.cli.fleet.dump", "dump", "Write the ledger as a fleet file."),
        "audit": Verb("dovetail.cli.fleet.audit", "audit", "Look for faults in the ledger."),
    },
    "Run": {
        "serve": Verb(
            "dovetail.cli.run.serve",
            "serve",
            "Serve the Placement API (and Dovetail's own) over HTTP.",
        ),
        "agent": Verb(
            "dovetail.cli.agent",
            "agent",
            "Run the daemon of a node, which gives pods their CPUs and memory; or ask it.",
        ),
        "scheduler": Verb(
            "dovetail.cli.run.scheduler",
            "scheduler",
            "Place pods of a Kubernetes cluster, and claim the devices they ask for.",
        ),
        "operator": Verb(
            "dovetail.cli.run.operator",
            "operator",
            "Hold the stock of Machines of a Kubernetes cluster, and sell it to guests.",
        ),
        "manifests": Verb(
            "dovetail.cli.run.manifests", "manifests", "Print what Kubernetes needs to know."
        ),
        "db": Verb(
            "dovetail.cli.run.db",
            "db",
            "Make, upgrade and check the tables of the ledger; "
            "back up and restore what is in them.",
        ),
        "config": Verb("dovetail.cli.run.config", "config", "What can be configured."),
        "token": Verb(
            "dovetail.cli.run.token",
            "token",
            "Make a token for USER: an entry to append to the token file, and the token itself.",
        ),
        "completion": Verb(
            "dovetail.cli.completion", "completion", "Print the completion script of a shell."
        ),
        "version": Verb("dovetail.cli.version", "version", "Show the version."),
    },
}
VERBS = {name: verb for verbs in SECTIONS.values() for name, verb in verbs.items()}

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code}  {what}" for code, what in exits.TABLE)


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in VERBS:
            return None
        verb = VERBS[name]
        command: click.Command = getattr(import_module(verb.module), verb.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, VERBS))
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), verb.summary) for name, verb in verbs.items()]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=verb.summary)
            for name, verb in VERBS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.command(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES
)
@click.version_option(__version__, prog_name="dovetail")
def main() -> None:
    """Fits workloads to hardware: one ledger of a fleet, one engine that finds every fit."""
