"""Compiling before the clock starts: the first fits ever on a machine wait for numba, which is no method's fault."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import pandas as pd

from ...engines.highs import ProgramError
from .methods import Context, Method


def warm_up(methods: Sequence[Method], n_classes: int, progress: Callable[[str, float], None]) -> None:
    """Fit each of our methods to a tiny sample with two or three classes that overlap, so that searches do search."""
    rng = np.random.default_rng(0)
    k = min(n_classes, 3)
    y = np.resize(np.arange(k), 18)
    X = rng.normal(size=(18, 3)) + 0.3 * y[:, None]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    context = Context(limit=None, seed=0, n_classes=k, n_rows=len(y), n_features=X.shape[1])
    ours = [m for m in methods if m.is_ours]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a tiny sample deserves is no news
        for at, method in enumerate(ours):
            progress("loading and, the first time, compiling", at / len(ours))
            for build in filter(None, (method.build, method.tuned_by)):
                # What a method cannot do it says when it is run on the real table.
                with suppress(ValueError, ProgramError):
                    model = build(context)
                    # Compiling would count against a limit, and what comes after a limit is not compiled.
                    model.set_params(time_limit=None).fit(frame if method.on_table else X, y)
