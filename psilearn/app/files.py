"""Writing files whole: a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def writing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary neighbour of ``path`` for writing and rename it at the end; on any error it is removed.

    Parameters
    ----------
    path : str or Path
        The file to be made or replaced.
    mode : {"w", "wb"}
        Text is written as UTF-8.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
    try:
        is_text = "b" not in mode
        with os.fdopen(handle, mode, encoding="utf-8" if is_text else None, newline="" if is_text else None) as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
