"""A data frame with columns of every kind and missing values."""

import numpy as np
import pandas as pd


def frame(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n).astype(float),
            "sex": rng.choice(["f", "m"], n),
            "smoker": rng.random(n) < 0.4,
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], n)),
            "visits": pd.array(rng.integers(0, 5, n), dtype="Int64"),
        }
    )
    y = np.where((X["age"] > 50) & (X["sex"] == "m") | (X["stage"] == "III"), "ill", "well")
    X.loc[3, "age"] = np.nan
    X.loc[4, "sex"] = None
    X.loc[5, "visits"] = pd.NA
    X.loc[6, "stage"] = None
    return X, y
