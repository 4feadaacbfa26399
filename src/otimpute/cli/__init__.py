"""The command ``otimpute``: commands parse options, call the library and show the result."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command line."""
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'otimpute: the command line needs the package {error.name!r}: pip install "otimpute[cli]"')
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        app(prog_name="otimpute")
    except OSError as error:  # of what is written before a command runs, such as its help
        if "--debug" in sys.argv:
            raise
        sys.exit(f"otimpute: {(error.strerror or str(error)).lower()}")
