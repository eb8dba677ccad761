"""
Three classes, fitted jointly
=============================

Sectors of the disk with a tenth of the labels flipped. The classes have one function each, and the functions sum to
zero; the truncation is at s = -1/2, which keeps the method consistent for three classes.
"""

from psilearn import TruncatedHingeClassifier
from psilearn.datasets import make_sectors
from psilearn.estimators.plots import BoundaryDisplay

X, y, clean = make_sectors(150, n_classes=3, flip=0.1, random_state=0, return_clean=True)
model = TruncatedHingeClassifier(C=10.0).fit(X, y)
BoundaryDisplay.from_estimator(model, X, y)
found = set(model.suspects_) & set((y != clean).nonzero()[0])
print(f"{(y != clean).sum()} labels are wrong; {len(model.suspects_)} are suspects, {len(found)} of them rightly")
