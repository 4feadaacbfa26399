"""The command ``otimpute``: each file a group of commands that parse, make one library call, and show the result."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the command line. What went wrong ends in one line; OTIMPUTE_TRACEBACK=1 shows where."""
    try:
        from .app import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if os.environ.get("OTIMPUTE_TRACEBACK"):
            raise
        if isinstance(error, ModuleNotFoundError) and error.name in ("typer", "rich") and "pip install" not in str(error):
            sys.exit(f'otimpute: the command line needs the package {error.name!r}: pip install "otimpute[cli]"')
        sys.exit(f"otimpute: {error}")
