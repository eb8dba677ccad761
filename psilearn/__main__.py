"""The command ``psilearn``, also as ``python -m psilearn``."""

from __future__ import annotations

import sys

from .core.extras import MissingExtraError, optional


def main() -> None:
    """Run the command line; without the packages it needs, say in one sentence how to get them."""
    try:
        for package in ("pandas", "typer", "rich"):
            optional(package, "cli", "The command psilearn")
    except MissingExtraError as error:
        print(f"psilearn: {error}", file=sys.stderr)
        sys.exit(1)
    from .app.cli import main as run

    run()


if __name__ == "__main__":
    main()
