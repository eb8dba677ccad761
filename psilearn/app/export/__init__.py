"""Models that travel: a fitted model as ONNX, SQL, PMML or an MLflow model, with the same answers.

Tests: tests/app/test_export.py.
"""

from .formula import ExportError, Formula
from .write import FORMATS, export

__all__ = ["FORMATS", "ExportError", "Formula", "export"]
