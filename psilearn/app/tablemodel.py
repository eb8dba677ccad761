"""A model for tables: encoder and classifier together, with the training schema, ready to be saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..evaluation.selective import confidence_of
from .encoding import TableEncoder
from .words import shown


@dataclass
class TableModel:
    """A fitted encoder and classifier, and what they were trained on.

    Attributes
    ----------
    encoder : TableEncoder
        From a table to a matrix.
    classifier : estimator
        Fitted on that matrix.
    target : str
        The column that was predicted.
    method, about : str, dict
        Name of the method, and facts of the training for the reader (rows, seed, chosen parameter).
    on_table : bool
        Whether the classifier reads the table itself; the encoder then only checks the columns.
    identifiers : tuple of str
        Columns that name a row; where a table has them, they stand beside the answers.
    """

    encoder: TableEncoder
    classifier: Any
    target: str
    method: str
    about: dict[str, Any]
    on_table: bool = False
    identifiers: tuple[str, ...] = ()

    @property
    def is_no_better_than_chance(self) -> bool:
        """Whether held-out rows were wrong as often as with the commonest class."""
        return self.about.get("held-out error", 0.0) >= self.about.get("error of the commonest class", 1.0)

    def predict(self, frame: pd.DataFrame, first_row: int = 1, identifiers: Sequence[str] = ()) -> pd.DataFrame:
        """Return one answer per row of a table.

        Parameters
        ----------
        frame : DataFrame
            A table with the columns of the training.
        first_row : int
            Number of its first row in the file.
        identifiers : sequence of str
            Columns that name a row, instead of the model's own.

        Returns
        -------
        DataFrame
            ``row``, the identifiers, ``prediction``, ``margin`` (how far ahead of the next class it is), ``abstains``
            and one probability per class where the classifier knows them, and ``unusual``: what training has not seen.
        """
        X = self.encoder.checked(frame) if self.on_table else self.encoder.transform(frame)
        answer = pd.DataFrame({"row": first_row + np.arange(len(frame))}, index=frame.index)
        for name in identifiers or [name for name in self.identifiers if name in frame.columns]:
            answer[name] = frame[name]
        answer["prediction"] = self.classifier.predict(X)
        if hasattr(self.classifier, "decision_function"):
            answer["margin"] = confidence_of(self.classifier.decision_function(X))
        if hasattr(self.classifier, "abstains"):
            answer["abstains"] = self.classifier.abstains(X)
        if hasattr(self.classifier, "predict_proba"):
            for name, share in zip(self.classifier.classes_, self.classifier.predict_proba(X).T):
                answer[f"probability of {shown(name, 40)}"] = share
        answer["unusual"] = self.encoder.unusual(frame)
        return answer
