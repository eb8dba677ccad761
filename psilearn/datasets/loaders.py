"""Loaders of the real data sets in the papers, their stand-ins, and the published benchmark instances.

A set is looked for in the folder named by the environment variable PSILEARN_DATA (one ``NAME.csv.gz`` per set: header
row, features, metadata columns that begin with ``meta_``, the last column ``target``; an empty cell is missing), then
on OpenML through scikit-learn. When it is nowhere, the error says what to put where.

All return a `sklearn.utils.Bunch` with ``data`` (float array, or object array where a feature is categorical),
``target`` (index into ``target_names``), ``feature_names``, ``target_names``, ``frame`` (features and named target),
``meta`` (ids, published split and the like) and ``DESCR``. Nothing is scaled and nothing is imputed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from ._sources import (
    FOLDER_VARIABLE,
    SOURCES,
    DataNotFoundError,
    Source,
    data_folder,
    fetch,
    find_file,
    read_table,
    to_bunch,
)


def list_datasets() -> pd.DataFrame:
    """Return the names that `load_dataset` takes, with their titles and where each would be read from now."""
    rows = [("wdbc", "Wisconsin diagnostic breast cancer", "scikit-learn")]
    for name, source in SOURCES.items():
        if find_file(f"{name}.csv.gz") is not None:
            place = f"${FOLDER_VARIABLE}"
        else:
            place = "OpenML" if source.openml is not None else "missing"
        rows.append((name, source.title, place))
    return pd.DataFrame(rows, columns=["name", "title", "place"])


def load_dataset(name: str, *, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load one data set by its name.

    Parameters
    ----------
    name : str
        One of the names of `list_datasets`.
    return_X_y : bool
        Return ``(data, target)`` instead of the Bunch.
    as_frame : bool
        Return the features as a DataFrame and the targets as a Series.

    Returns
    -------
    Bunch, or (data, target)
    """
    bunch = load_breast_cancer() if name == "wdbc" else fetch(name)
    if name == "wdbc":
        bunch.meta = pd.DataFrame(index=range(len(bunch.target)))
        bunch.frame = pd.DataFrame(bunch.data, columns=bunch.feature_names).assign(
            target=bunch.target_names[bunch.target]
        )
    if as_frame:
        bunch.data = bunch.frame.drop(columns="target")
        bunch.target = pd.Series(bunch.target, name="target", index=bunch.data.index)
    return (bunch.data, bunch.target) if return_X_y else bunch


def load_wdbc(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Wisconsin diagnostic breast cancer data: 569 x 30, scikit-learn's own copy."""
    return load_dataset("wdbc", return_X_y=return_X_y, as_frame=as_frame)


def load_bcw(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the original Wisconsin breast cancer data: 699 x 9, 16 cells missing."""
    return load_dataset("bcw", return_X_y=return_X_y, as_frame=as_frame)


def load_vote(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the congressional votes: 435 x 16, values y / n / missing."""
    return load_dataset("vote", return_X_y=return_X_y, as_frame=as_frame)


def load_clvheart(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Cleveland heart data: 303 x 13, disease present (any degree) or absent, 6 cells missing."""
    return load_dataset("clvheart", return_X_y=return_X_y, as_frame=as_frame)


def load_huheart(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Hungarian heart data: 294 x 13, disease present or absent, 782 cells missing."""
    return load_dataset("huheart", return_X_y=return_X_y, as_frame=as_frame)


def load_sonar(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the sonar data: 208 x 60, mines (M) against rocks (R)."""
    return load_dataset("sonar", return_X_y=return_X_y, as_frame=as_frame)


def load_colon(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the colon tumour data: 62 x 2000, a stand-in for expression data with p much larger than n."""
    return load_dataset("colon_alon", return_X_y=return_X_y, as_frame=as_frame)


def load_breast_gravier(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the breast cancer CGH data: 168 x 2905, a stand-in for the thyroid data (same number of samples)."""
    return load_dataset("breast_gravier", return_X_y=return_X_y, as_frame=as_frame)


def load_srbct(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the small round blue cell tumours: 63 x 2308, four classes."""
    return load_dataset("srbct_khan", return_X_y=return_X_y, as_frame=as_frame)


def load_thyroid(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the thyroid expression data (168 x 2000) if ``thyroid.csv.gz`` is in the data folder.

    No public copy is known; the error names the stand-ins.
    """
    return load_dataset("thyroid", return_X_y=return_X_y, as_frame=as_frame)


def between_within_ratio(X: NDArray, y: NDArray) -> NDArray:
    """Return sum_k n_k (mean_kj - mean_j)^2 / sum_i (x_ij - mean_{y_i j})^2 for every column j.

    The gene screen of Dudoit, Fridlyand and Speed, Comparison of discrimination methods for the classification of
    tumors using gene expression data, 2002. A column that is constant within every class has ratio inf, a constant
    column 0.
    """
    labels, position = np.unique(y, return_inverse=True)
    means = np.vstack([X[position == k].mean(axis=0) for k in range(len(labels))])
    sizes = np.bincount(position)
    between = sizes @ (means - X.mean(axis=0)) ** 2
    within = ((X - means[position]) ** 2).sum(axis=0)
    ratio = np.where(between > 0.0, np.inf, 0.0)
    return np.divide(between, within, out=ratio, where=within > 0.0)


def load_leukemia(*, n_genes: int | None = 50, standardize: bool = True) -> Bunch:
    """Load the leukemia data of Golub et al. (1999) with its published split and the gene screen of the paper.

    Section 5.2 of Liu, Shen and Doss (2005): standardise each *sample* across genes, then keep the ``n_genes`` genes
    with the largest between to within sum of squares on the *training* samples.

    Parameters
    ----------
    n_genes : int or None
        Genes kept, the best first; None keeps all 7129 in their order.
    standardize : bool
        Give every sample mean 0 and standard deviation 1 across its genes before the screen.

    Returns
    -------
    Bunch
        As every loader, with ``train`` and ``test`` (row indices: 38 and 34) and ``sample`` (the published numbers).
    """
    bunch = fetch("golub")
    X = bunch.data
    if standardize:
        X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    bunch.train, bunch.test = (np.flatnonzero(bunch.meta["meta_split"] == part) for part in ("train", "test"))
    bunch.sample = bunch.meta["meta_sample"].to_numpy()
    if n_genes is not None:
        ratio = between_within_ratio(X[bunch.train], bunch.target[bunch.train])
        kept = np.argsort(-ratio, kind="stable")[:n_genes]
        X = X[:, kept]
        bunch.feature_names = [bunch.feature_names[j] for j in kept]
    bunch.data = X
    bunch.frame = pd.DataFrame(X, columns=bunch.feature_names).assign(target=bunch.target_names[bunch.target])
    return bunch


def _instances(folder: str) -> list[str]:
    root = data_folder()
    if root is None or not (root / folder).is_dir():
        place = f"{FOLDER_VARIABLE} is not set" if root is None else f"{root} has no folder {folder!r}"
        raise DataNotFoundError(
            f"The {folder} instances were not found: {place}. Set the environment variable {FOLDER_VARIABLE} to a "
            f"folder that holds {folder}/NAME.csv.gz."
        )
    return sorted(path.name.removesuffix(".csv.gz") for path in (root / folder).glob("*.csv.gz"))


def _read_instance(folder: str, name: str) -> pd.DataFrame:
    known = _instances(folder)
    if name not in known:
        raise ValueError(f"unknown {folder} instance {name!r}; known are {', '.join(known)}.")
    path = find_file(f"{folder}/{name}.csv.gz")
    assert path is not None
    return read_table(path)


def list_hardmargin() -> list[str]:
    """Return the names of the hard-margin-loss instances in the data folder."""
    return _instances("hardmargin")


def load_hardmargin(name: str) -> Bunch:
    """Load one hard-margin-loss instance with the bounds published for it.

    Instances of J. P. Brooks, Support vector machines with the ramp loss and the hard margin loss, 2011; bounds of
    I. Santana, B. Serrano, M. Schiffer and T. Vidal, Support vector machines with the hard-margin loss: optimal
    training via combinatorial Benders' cuts, 2022, on 1/2 ||w||^2 + C #{i : y_i f(x_i) < 1}. Use the features as they
    are: no scaling.

    Returns
    -------
    Bunch
        ``target`` holds -1 and +1; ``published`` is a frame with one row per C (upper_bound, lower_bound, solved ...).
    """
    table = _read_instance("hardmargin", name)
    labels = table.pop("target")
    bunch = to_bunch(table, labels, Source(f"hard-margin instance {name}", {}), f"${FOLDER_VARIABLE}/hardmargin")
    bunch.target = labels.astype(int).to_numpy()
    results = find_file("hardmargin/published.csv")
    if results is None:
        raise DataNotFoundError(f"published.csv is missing from {data_folder()}/hardmargin.")
    published = pd.read_csv(results)
    bunch.published = published[published["name"] == name].reset_index(drop=True)
    return bunch


def list_monomial() -> list[str]:
    """Return the names of the maximum monomial agreement instances in the data folder."""
    return _instances("monomial")


def load_monomial(name: str) -> Bunch:
    """Load one maximum monomial agreement instance: binary attributes, target 1 / 0, weights that sum to 1.

    Binarizations published by N. Goldberg and J. Eckstein with the branch-and-bound library PEBBL. Where a file has
    no weights every row weighs 1 / M.
    """
    table = _read_instance("monomial", name)
    weight = table.pop("weight").to_numpy() if "weight" in table else np.full(len(table), 1.0 / len(table))
    labels = table.pop("target")
    bunch = to_bunch(table, labels, Source(f"monomial instance {name}", {}), f"${FOLDER_VARIABLE}/monomial")
    bunch.sample_weight = weight
    return bunch
