"""How good a classifier is: metrics, and when to answer."""
