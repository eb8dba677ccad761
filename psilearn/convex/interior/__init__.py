"""Problems with an l1 part by an interior point and a crossover to a vertex.

Tests: tests/convex/test_l1_convex.py, tests/convex/test_predictor_corrector.py.
"""
