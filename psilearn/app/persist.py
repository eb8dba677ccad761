"""Saving and loading fitted models in a format that cannot execute code.

A model file is a zip archive of ``model.json`` and one ``.npy`` member per array. Loading parses JSON, reads arrays
with pickling forbidden, and builds objects of the classes listed in :data:`CLASSES` only; nothing in the file names
code, so nothing in it can run.
"""

from __future__ import annotations

import enum
import importlib
import io
import json
import math
import os
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import __version__
from .files import writing

FORMAT = "psilearn-model"
FORMAT_VERSION = 2

#: Class name -> module: the only classes a file can bring to life.
CLASSES: dict[str, str] = {
    "SVMClassifier": "estimators.margin",
    "TruncatedHingeClassifier": "estimators.margin",
    "PsiClassifier": "estimators.margin",
    "MarginClassifier": "estimators.margin",
    "RejectClassifier": "estimators.reject",
    "LPBoostClassifier": "estimators.rules.lpboost",
    "L0BoostClassifier": "estimators.rules.l0boost",
    "SlipperClassifier": "estimators.rules.slipper",
    "TunedClassifier": "estimators.tuning.classifier",
    "LogicalBinarizer": "rules.binarize",
    "Attribute": "rules.attributes",
    "Conjunction": "rules.attributes",
    "Rule": "rules.rules",
    "GivenRule": "rules.rules",
    "LPBoostResult": "rules.lpboost",
    "L0BoostResult": "rules.l0.result",
    "SlipperResult": "rules.slipper",
    "RelaxationCertificate": "rules.l0.result",
    "Column": "rules.pricing.oracles",
    "Monomial": "rules.pricing.data",
    "CutPoint": "rules.pricing.data",
    "Chain": "rules.large.cut_points",
    "Vote": "rules.joint",
    "TableEncoder": "app.encoding",
    "TableModel": "app.tablemodel",
    "Certificate": "core.result",
    "TreeRecord": "exact.two_class.tree.record_jit",
    "Step": "core.result",
    "Status": "core.result",
    "Claim": "core.result",
    "Guarantee": "evaluation.selective",
    "Kernel": "core.spaces.gram",
    "LowRank": "core.spaces.low_rank",
    "Implied": "core.chunks.problem",
    "Smoothing": "core.chunks.sums",
    "Hinge": "core.losses",
    "Psi": "core.losses",
    "TruncatedHinge": "core.losses",
    "ByClass": "core.losses",
    "RejectHinge": "core.losses",
    "TruncatedReject": "core.losses",
    "HardMargin": "core.losses",
}


class ModelFileError(ValueError):
    """The file is not a model this version can load; the message says why."""


def save(model: Any, path: str | Path) -> None:
    """Write a fitted estimator (or :class:`.tablemodel.TableModel`) to a file.

    Parameters
    ----------
    model : object
        An instance of one of :data:`CLASSES`. A callable among its parameters (a kernel, say) cannot be saved.
    path : str or Path
        The file; it appears whole or not at all.
    """
    packer = _Packer()
    tree = {"format": FORMAT, "version": FORMAT_VERSION, "psilearn": __version__, "model": packer.pack(model, "model")}
    with writing(path, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(tree, allow_nan=False, ensure_ascii=False))
        for at, array in enumerate(packer.arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(f"arrays/{at}.npy", buffer.getvalue())


def load(path: str | Path) -> Any:
    """Read a model written by :func:`save`; :class:`ModelFileError` says why a file cannot be loaded.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        The fitted estimator.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file '{path}'.")
    try:
        with zipfile.ZipFile(path) as archive:
            tree = json.loads(archive.read("model.json"))
            _check_header(tree, path)
            return _Unpacker(archive).unpack(tree["model"])
    except ModelFileError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, RecursionError) as error:
        raise ModelFileError(f"'{path.name}' is not a psilearn model file, or is damaged ({error}).") from None


def _check_header(tree: Any, path: Path) -> None:
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise ModelFileError(f"'{path.name}' is not a psilearn model file.")
    if tree.get("version") != FORMAT_VERSION:
        raise ModelFileError(
            f"'{path.name}' has format version {tree.get('version')!r}, written by psilearn {tree.get('psilearn')!r}; "
            f"this is psilearn {__version__}, which reads version {FORMAT_VERSION}."
        )


def _class(name: str) -> type:
    if name not in CLASSES:
        raise ModelFileError(f"The file asks for the class {name!r}, which model files may not contain.")
    return getattr(importlib.import_module(f"psilearn.{CLASSES[name]}"), name)


class _Packer:
    """Turns objects into a tree of JSON values; arrays go aside. Everything not plain JSON is a one-key dict."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def pack(self, value: Any, where: str) -> Any:
        """Return the JSON tree of a value; ``where`` names it in errors."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int) or (isinstance(value, str) and type(value) is str):
            return value
        if isinstance(value, enum.Enum):
            return {"$enum": [self._known(value, where), value.name]}
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, where)
        if isinstance(value, list):
            return [self.pack(v, f"{where}[{i}]") for i, v in enumerate(value)]
        if isinstance(value, dict):
            pairs = [[self.pack(k, where), self.pack(v, f"{where}[{k!r}]")] for k, v in value.items()]
            return {"$dict": pairs}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"$tuple": [self.pack(v, f"{where}[{i}]") for i, v in enumerate(value)]}
        return {"$object": [self._known(value, where), *self._parts(value, where)]}

    def _parts(self, value: Any, where: str) -> list[Any]:
        """Return constructor arguments and, for estimators, fitted state."""
        if isinstance(value, BaseEstimator):
            given = value.get_params(deep=False)
            state = {k: v for k, v in vars(value).items() if k not in given}
            return [self._pack_names(given, where), self._pack_names(state, where)]
        if isinstance(value, tuple):
            return [self._pack_names(value._asdict(), where), {}]  # type: ignore[attr-defined]
        if is_dataclass(value):
            return [self._pack_names({f.name: getattr(value, f.name) for f in fields(value) if f.init}, where), {}]
        raise TypeError(f"{where} is of type {type(value).__name__}, which cannot be saved.")

    def _pack_names(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        return {name: self.pack(v, f"{where}.{name}") for name, v in values.items()}

    def _pack_array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.kind in "biufU":
            self.arrays.append(value)
            return {"$array": len(self.arrays) - 1}
        if value.dtype.kind == "O" and value.ndim == 1:
            return {"$objects": [self.pack(v, where) for v in value.tolist()]}
        raise TypeError(f"{where} is an array of {value.dtype}, which cannot be saved.")

    def _known(self, value: Any, where: str) -> str:
        name = type(value).__name__
        if type(value).__module__ != f"psilearn.{CLASSES.get(name, '')}":
            raise TypeError(f"{where} is of type {name}, which cannot be saved.")
        return name


class _Unpacker:
    """The inverse of :class:`_Packer`."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive

    def unpack(self, tree: Any) -> Any:
        """Return the value of a JSON tree."""
        if isinstance(tree, list):
            return [self.unpack(v) for v in tree]
        if not isinstance(tree, dict):
            return tree
        if len(tree) != 1:
            raise ValueError("a tagged value must have one key")
        ((tag, body),) = tree.items()
        if tag == "$float":
            return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[body]
        if tag == "$tuple":
            return tuple(self.unpack(body))
        if tag == "$dict":
            return {self.unpack(k): self.unpack(v) for k, v in body}
        if tag == "$array":
            with self.archive.open(f"arrays/{int(body)}.npy") as file:
                return np.lib.format.read_array(file, allow_pickle=False)
        if tag == "$objects":
            out = np.empty(len(body), dtype=object)
            out[:] = self.unpack(body)
            return out
        if tag == "$enum":
            return _enum(*body)
        if tag == "$object":
            return self._object(*body)
        raise ValueError(f"unknown tag {tag!r}")

    def _object(self, name: str, given: dict[str, Any], state: dict[str, Any]) -> Any:
        kind = _class(name)
        made = kind(**{k: self.unpack(v) for k, v in given.items()})
        if state and not isinstance(made, BaseEstimator):
            raise ValueError(f"{name} has no fitted state")
        for key, value in state.items():
            if not key.isidentifier() or key.startswith("__") or hasattr(kind, key):
                raise ValueError(f"{key!r} is not the name of fitted state")
            setattr(made, key, self.unpack(value))
        return made


def _enum(name: str, member: str) -> enum.Enum:
    kind = _class(name)
    if not issubclass(kind, enum.Enum):
        raise ValueError(f"{name} is not an enumeration")
    return kind[member]
