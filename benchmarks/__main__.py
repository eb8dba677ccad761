"""Run the benchmarks: ``python -m benchmarks [NAMES] [--quick] [--json FILE] [--against FILE]``."""

from .runner.command import main

raise SystemExit(main())
