"""
Fewer answers, fewer errors
===========================

A classifier that may abstain answers where its function is far from zero. The curve shows the error among the answers
as more and more of the doubtful samples are left out.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from psilearn import RejectClassifier
from psilearn.estimators.plots import RiskCoverageDisplay

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
scaler = StandardScaler().fit(X)
model = RejectClassifier(d=0.1, C=0.1).fit(scaler.transform(X), y)
RiskCoverageDisplay.from_estimator(model, scaler.transform(X_test), y_test)
