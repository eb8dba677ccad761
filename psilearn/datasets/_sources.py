"""Where each data set can be found, and how a table from any place becomes one and the same Bunch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

FOLDER_VARIABLE = "PSILEARN_DATA"


class DataNotFoundError(FileNotFoundError):
    """A data set is in none of the places where it was looked for; the message says what to do."""


@dataclass(frozen=True)
class Source:
    """One data set: its title, its classes, and where to get it.

    Attributes
    ----------
    title : str
    counts : mapping of str to int
        Class names with their sizes, in the order of ``target_names``. Empty when unknown. A copy whose class sizes
        differ is refused.
    openml : (name, version) or None
        Its OpenML identity. Classes spelled differently there are recognised by their sizes.
    merge : mapping
        Label in the folder's file -> class name, where classes are renamed or merged.
    hint : str
        One more sentence for the user who does not have it.
    """

    title: str
    counts: Mapping[str, int] = field(default_factory=dict)
    openml: tuple[str, int] | None = None
    merge: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""


_HEART_MERGE = {"0": "absent", "1": "present", "2": "present", "3": "present", "4": "present"}

SOURCES: dict[str, Source] = {
    "bcw": Source("Wisconsin breast cancer (original)", {"benign": 458, "malignant": 241}, ("breast-w", 1)),
    "vote": Source("US congressional voting records 1984", {"democrat": 267, "republican": 168}, ("vote", 1)),
    "clvheart": Source(
        "Heart disease, Cleveland",
        {"absent": 164, "present": 139},
        merge=_HEART_MERGE,
        hint="It is processed.cleveland.data of the UCI heart disease repository.",
    ),
    "huheart": Source("Heart disease, Hungarian", {"absent": 188, "present": 106}, ("heart-h", 1), merge=_HEART_MERGE),
    "sonar": Source("Sonar, mines against rocks", {"M": 111, "R": 97}, ("sonar", 1)),
    "golub": Source(
        "Leukemia gene expression of Golub et al. (1999)",
        {"ALL-B": 38, "ALL-T": 9, "AML": 25},
        hint="It is the Bioconductor package golubEsets; OpenML's copy lacks the B and T lineage.",
    ),
    "thyroid": Source(
        "Thyroid tumour gene expression of Yukinawa et al. (2006)",
        hint="No public copy is known; load_colon and load_breast_gravier are stand-ins of similar shape.",
    ),
    "colon_alon": Source("Colon tumour gene expression of Alon et al. (1999)", {"normal": 22, "tumor": 40}),
    "breast_gravier": Source("Breast cancer CGH of Gravier et al. (2010)", {"good": 111, "poor": 57}),
    "srbct_khan": Source(
        "Small round blue cell tumours of Khan et al. (2001)", {"BL": 8, "EWS": 23, "NB": 12, "RMS": 20}
    ),
    "adult": Source("Adult census income", {"<=50K": 37155, ">50K": 11687}, ("adult", 2)),
    "avila": Source("Avila bible, copyists"),
    "banknote": Source("Banknote authentication", {"0": 762, "1": 610}, ("banknote-authentication", 1)),
    "dna": Source("StatLog DNA splice junctions", {"ei": 767, "ie": 765, "n": 1654}, ("dna", 1)),
    "eeg_eye_state": Source("EEG eye state", {"0": 8257, "1": 6723}, ("eeg-eye-state", 1)),
    "german_credit": Source("German credit", {"bad": 300, "good": 700}, ("credit-g", 1)),
    "glass": Source("Glass identification", {"1": 70, "2": 76, "3": 17, "5": 13, "6": 9, "7": 29}, ("glass", 1)),
    "htru2": Source("HTRU2 pulsar candidates", {"0": 16259, "1": 1639}),
    "ionosphere": Source("Ionosphere radar returns", {"bad": 126, "good": 225}, ("ionosphere", 1)),
    "letter": Source("Letter recognition"),
    "mushroom": Source("Mushrooms", {"edible": 4208, "poisonous": 3916}, ("mushroom", 1)),
    "music_genre_crowd": Source("Music genres labelled by a crowd (Rodrigues et al. 2013)"),
    "phoneme": Source("Phoneme, nasal against oral", {"0": 3818, "1": 1586}, ("phoneme", 1)),
    "pima": Source("Pima Indians diabetes", {"neg": 500, "pos": 268}, ("diabetes", 1)),
    "satimage": Source("StatLog Landsat satellite"),
    "segment": Source("Image segmentation"),
    "shuttle": Source("StatLog shuttle"),
    "spambase": Source("Spambase", {"nonspam": 2788, "spam": 1813}, ("spambase", 1)),
    "vehicle": Source(
        "StatLog vehicle silhouettes", {"bus": 218, "opel": 212, "saab": 217, "van": 199}, ("vehicle", 1)
    ),
    "vowel": Source("Deterding vowels"),
}


def data_folder() -> Path | None:
    """Return the folder named by PSILEARN_DATA, None when the variable is unset or empty."""
    name = os.environ.get(FOLDER_VARIABLE)
    return Path(name) if name else None


def find_file(relative: str) -> Path | None:
    """Return the path of a file in the data folder, None if there is no folder or no such file."""
    folder = data_folder()
    if folder is None or not (folder / relative).is_file():
        return None
    return folder / relative


def read_table(path: Path) -> pd.DataFrame:
    """Read one CSV of the data folder: an empty cell is missing and nothing else is; the target stays text."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"target": str})


def fetch(name: str) -> Bunch:
    """Return the data set as a Bunch, from the data folder if it is there, else from OpenML."""
    if name not in SOURCES:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(sorted(SOURCES))}.")
    source = SOURCES[name]
    path = find_file(f"{name}.csv.gz")
    if path is not None:
        table = read_table(path)
        labels = table.pop("target").map(lambda label: source.merge.get(label, label))
        origin = str(path)
    elif source.openml is not None:
        table, labels = _from_openml(name, source)
        origin = "OpenML {} version {}".format(*source.openml)
    else:
        raise DataNotFoundError(_advice(name, source))
    return to_bunch(table, labels, source, origin)


def _from_openml(name: str, source: Source) -> tuple[pd.DataFrame, pd.Series]:
    assert source.openml is not None
    try:
        fetched = fetch_openml(source.openml[0], version=source.openml[1], as_frame=True, parser="auto")
    except OSError as error:
        raise DataNotFoundError(_advice(name, source) + f" OpenML could not be reached ({error}).") from error
    labels = fetched.target.astype(str)
    return fetched.data, labels.map(_names_by_size(labels, source))


def _names_by_size(labels: pd.Series, source: Source) -> dict[str, str]:
    """Map OpenML's class labels to ours; equal sizes could not be told apart, so spelling decides those."""
    sizes = labels.value_counts().to_dict()
    if set(sizes) == set(source.counts):
        return {label: label for label in sizes}
    if len(set(source.counts.values())) < len(source.counts) or sorted(sizes.values()) != sorted(
        source.counts.values()
    ):
        raise ValueError(f"OpenML's copy has class sizes {sizes}, not {dict(source.counts)} as {source.title} has.")
    by_size = {size: name for name, size in source.counts.items()}
    return {label: by_size[size] for label, size in sizes.items()}


def to_bunch(table: pd.DataFrame, labels: pd.Series, source: Source, origin: str) -> Bunch:
    """Build the Bunch: features, integer targets, names, the metadata columns and the whole as a frame."""
    counts = labels.value_counts().to_dict()
    if source.counts and counts != dict(source.counts):
        raise ValueError(f"{origin} has class sizes {counts}, not {dict(source.counts)} as {source.title} has.")
    target_names = np.array(list(source.counts) or sorted(counts))
    meta_columns = [column for column in table.columns if str(column).startswith("meta_")]
    features = table.drop(columns=meta_columns)
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in features.dtypes)
    position = {name: code for code, name in enumerate(target_names)}
    return Bunch(
        data=features.to_numpy(dtype=float if numeric else object),
        target=labels.map(position).to_numpy(dtype=int),
        feature_names=[str(column) for column in features.columns],
        target_names=target_names,
        frame=pd.concat([features, labels.rename("target")], axis=1),
        meta=table[meta_columns],
        DESCR=f"{source.title}; read from {origin}.",
    )


def _advice(name: str, source: Source) -> str:
    folder = data_folder()
    looked = f"it is not in {folder}" if folder is not None else f"{FOLDER_VARIABLE} is not set"
    advice = (
        f"{source.title} was not found: {looked}. Put {name}.csv.gz (header row, features, last column 'target') "
        f"into a folder and set the environment variable {FOLDER_VARIABLE} to it."
    )
    return f"{advice} {source.hint}" if source.hint else advice
