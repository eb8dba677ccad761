"""``psilearn warmup``: compile everything once, so that no later run waits for it."""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import typer


def warmup() -> None:
    """Compile everything once; later runs on this machine start at once."""
    from ..compare.methods import METHODS
    from ..compare.warmup import warm_up
    from ..terminal import progress_bar

    began = time.perf_counter()
    with progress_bar() as progress:
        for at, n_classes in enumerate((2, 3)):
            warm_up(METHODS, n_classes, lambda text, done, at=at: progress(text, (at + done) / 3))  # type: ignore[misc]
        progress("compiling the audit and the proofs", 2 / 3)
        _audit_and_prove()
    typer.echo(f"Everything is compiled ({time.perf_counter() - began:.0f} s); first fits no longer wait.")


def _audit_and_prove() -> None:
    """Call what the audit and the proofs need on a tiny sample whose classes overlap."""
    import numpy as np

    from ... import HardMargin, MarginClassifier, PsiClassifier, certify_labels, find_label_issues, prove

    rng = np.random.default_rng(0)
    y = np.resize([0, 1], 40)
    X = rng.normal(size=(40, 3)) + 0.8 * y[:, None]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # what a tiny sample deserves is no news
        find_label_issues(X, y)
        certify_labels(PsiClassifier(), X, y)
        for model in (PsiClassifier(), MarginClassifier(HardMargin())):
            prove(model, X, y, Path(folder) / "fit.proof")
