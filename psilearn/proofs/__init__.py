"""Proof files: :mod:`.write` makes them (:func:`psilearn.prove`), :mod:`.check` checks them with nothing of ours.

The format is described in ``format.md``. Nothing is imported here, so that the checker runs as a module at no cost.
"""
