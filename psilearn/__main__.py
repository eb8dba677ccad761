"""``python -m psilearn`` is the command ``psilearn``."""

from .app.cli import main

if __name__ == "__main__":
    main()
