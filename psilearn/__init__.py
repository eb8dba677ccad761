"""psilearn: robust, sparse, abstaining classifiers that prove how good their fit is."""

from ._version import __version__

__all__ = ["__version__"]
