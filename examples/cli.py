"""What every example here starts with: its arguments, and an end without noise at Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

ArgumentsT = TypeVar("ArgumentsT")


def parse(arguments: type[ArgumentsT], description: str) -> ArgumentsT:
    """Return ``arguments`` as the command line fills it.

    Each field becomes an option of its default's type: ``num_episodes: int = 100`` is
    ``--num-episodes 200``, and ``known: bool = False`` the switch ``--known``.

    Args:
        arguments: A dataclass whose fields all have defaults.
        description: The first line of the help text.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for item in fields(arguments):  # type: ignore[arg-type]
        default: Any = item.default
        if default is MISSING:
            raise TypeError(f"`{item.name}` must have a default")
        option = f"--{item.name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=default)
        else:
            parser.add_argument(
                option, type=type(default), default=default, help=f"{default} by default"
            )
    return arguments(**vars(parser.parse_args()))


def start(main: Callable[[], None]) -> None:
    """Call ``main``; Ctrl-C ends it with a line and exit code 130."""
    try:
        main()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
