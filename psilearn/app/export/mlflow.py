"""An MLflow model over our own file format, which cannot run code when it is loaded.

``save_model`` writes a folder with the model file and the description MLflow reads; ``mlflow.pyfunc.load_model`` loads
it through :func:`_load_pyfunc` below.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ... import __version__
from ...core.extras import optional
from .. import persist
from ..tablemodel import TableModel

FILE = "model.psi"


class PyFunc:
    """What MLflow calls: ``predict`` of a table."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, frame: Any, params: Any = None) -> Any:
        """Return the answers: a table for a model of ``psilearn fit``, else an array of classes."""
        del params
        return self.model.predict(frame)


def _load_pyfunc(path: str) -> PyFunc:
    """Load what :func:`save_model` wrote; called by MLflow."""
    return PyFunc(persist.load(Path(path)))


def save_model(model: Any, path: str | Path) -> None:
    """Write a folder that ``mlflow.pyfunc.load_model`` loads.

    Parameters
    ----------
    model : estimator or TableModel
        Anything :func:`psilearn.save` takes.
    path : str or Path
        The folder; it must not exist.
    """
    optional("mlflow", "mlflow", "An MLflow model")
    from mlflow.models import Model
    from mlflow.pyfunc import add_to_model

    folder = Path(path)
    folder.mkdir(parents=True)
    persist.save(model, folder / FILE)
    description = Model()
    add_to_model(description, loader_module=__name__, data=FILE)
    kind = model.method if isinstance(model, TableModel) else type(model).__name__
    description.add_flavor("psilearn", version=__version__, data=FILE, kind=kind)
    description.save(str(folder / "MLmodel"))
    (folder / "requirements.txt").write_text(f"psilearn=={__version__}\n", encoding="utf-8")
