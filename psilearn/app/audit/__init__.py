"""The label audit: which labels of a table are wrong, how many, and why one should think so."""

from .issues import find_label_issues

__all__ = ["find_label_issues"]
