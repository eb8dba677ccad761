"""A model for tables: encoder and classifier together, with the training schema, ready to be saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .encoding import TableEncoder


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
    """

    encoder: TableEncoder
    classifier: Any
    target: str
    method: str
    about: dict[str, Any]
    on_table: bool = False

    def predict(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the class, the margin (how far ahead of the next class it is), and whether the model abstains."""
        X = self.encoder.checked(frame) if self.on_table else self.encoder.transform(frame)
        answer = pd.DataFrame({"prediction": self.classifier.predict(X)}, index=frame.index)
        if hasattr(self.classifier, "decision_function"):
            scores = self.classifier.decision_function(X)
            if scores.ndim == 1:
                answer["margin"] = np.abs(scores)
            else:
                best = np.sort(scores, axis=1)
                answer["margin"] = best[:, -1] - best[:, -2]
        if hasattr(self.classifier, "abstains"):
            answer["abstains"] = self.classifier.abstains(X)
        return answer
