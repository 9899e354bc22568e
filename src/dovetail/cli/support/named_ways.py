"""A verb that can be used as it is, and in other ways that have names: `explain`, `explain pod`."""

from __future__ import annotations

from typing import Any

import click

NAMED = "dovetail.named"


class NamedWays(click.Group):
    """What comes first decides: the name of a way, or options and arguments of the verb itself."""

    allow_interspersed_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in self.commands:
            ctx.meta[NAMED] = True
            ctx.allow_interspersed_args = False
            return super().parse_args(ctx, args)
        return click.Command.parse_args(self, ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [] if ctx.meta.get(NAMED) else super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        if not ctx.meta.get(NAMED):
            return click.Command.invoke(self, ctx)
        verb, self.callback = self.callback, None
        try:
            return super().invoke(ctx)
        finally:
            self.callback = verb
