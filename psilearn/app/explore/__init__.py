"""The interactive explorer: one page where a mislabelled point is dragged and the boundaries respond."""

from .page import explorer_html, explorer_page, two_clouds

__all__ = ["explorer_html", "explorer_page", "two_clouds"]
