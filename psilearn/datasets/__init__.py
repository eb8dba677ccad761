"""Simulated designs with their exact Bayes rules, and loaders of the real data sets of the papers.

Tests: tests/datasets/.
"""

from typing import TYPE_CHECKING, Any

from ..core.extras import optional
from ._labels import Flip, flip_labels
from .bayes import (
    BayesRule,
    bayes_beta_mixture,
    bayes_disk,
    bayes_folded_sectors,
    bayes_gaussian_ar,
    bayes_quadratic,
    bayes_sectors,
    bayes_t_diamond,
    bayes_t_mixture,
    bayes_triangles,
    gaussian_ar_direction,
)
from .generators import (
    make_beta_mixture,
    make_disk,
    make_folded_sectors,
    make_gaussian_ar,
    make_quadratic,
    make_sectors,
    make_t_diamond,
    make_t_mixture,
    make_triangles,
)

if TYPE_CHECKING:
    from ._sources import DataNotFoundError
    from .loaders import (
        between_within_ratio,
        list_datasets,
        list_hardmargin,
        list_monomial,
        load_bcw,
        load_breast_gravier,
        load_clvheart,
        load_colon,
        load_dataset,
        load_hardmargin,
        load_huheart,
        load_leukemia,
        load_monomial,
        load_sonar,
        load_srbct,
        load_thyroid,
        load_vote,
        load_wdbc,
    )

__all__ = [
    "BayesRule",
    "DataNotFoundError",
    "Flip",
    "bayes_beta_mixture",
    "bayes_disk",
    "bayes_folded_sectors",
    "bayes_gaussian_ar",
    "bayes_quadratic",
    "bayes_sectors",
    "bayes_t_diamond",
    "bayes_t_mixture",
    "bayes_triangles",
    "between_within_ratio",
    "flip_labels",
    "gaussian_ar_direction",
    "list_datasets",
    "list_hardmargin",
    "list_monomial",
    "load_bcw",
    "load_breast_gravier",
    "load_clvheart",
    "load_colon",
    "load_dataset",
    "load_hardmargin",
    "load_huheart",
    "load_leukemia",
    "load_monomial",
    "load_sonar",
    "load_srbct",
    "load_thyroid",
    "load_vote",
    "load_wdbc",
    "make_beta_mixture",
    "make_disk",
    "make_folded_sectors",
    "make_gaussian_ar",
    "make_quadratic",
    "make_sectors",
    "make_t_diamond",
    "make_t_mixture",
    "make_triangles",
]


def __getattr__(name: str) -> Any:
    """Import the loaders when first asked for: they read tables with pandas, which the generators do not need."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    optional("pandas", "cli", f"psilearn.datasets.{name}")
    from . import loaders

    return getattr(loaders, name)
