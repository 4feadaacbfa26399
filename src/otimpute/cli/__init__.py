"""The command ``otimpute``: each file a group of commands that parse, make one library call, and show the result."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command line. Mistakes in what a person asked for end in one line, not a traceback."""
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'otimpute: the command line needs the package {error.name!r}: pip install "otimpute[cli]"')
    try:
        app()
    except (ValueError, OSError, ModuleNotFoundError) as error:
        sys.exit(f"otimpute: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
