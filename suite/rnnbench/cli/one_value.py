"""A group of commands that refuse an option of one value which is given twice. Click would silently take the last."""

from __future__ import annotations

from collections import Counter

import click


class OneValueGroup(click.Group):
    """A group whose commands take each option once, but for flags and options that may be repeated."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _require_one_value(click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest


def _require_one_value(context: click.Context, arguments: list[str]) -> None:
    try:
        _, _, given = context.command.make_parser(context).parse_args(list(arguments))
    except click.BadOptionUsage as error:  # Click does not say of which command.
        error.ctx = error.ctx or context
        raise
    for option, times in Counter(given).items():
        if isinstance(option, click.Option) and times > 1 and not (option.multiple or option.is_flag):
            name = max(option.opts, key=len)
            raise click.UsageError(f"{name} is given {times} times and takes one value; give it once", context)
