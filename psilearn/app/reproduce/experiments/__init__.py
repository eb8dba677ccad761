"""The experiments: one module per paper, one function per table or figure, no algorithm inside.

They live inside the package, not in a folder beside it, because ``psilearn reproduce`` must work from an installed
package and because workers (local processes, a dask cluster) import a task's function by its module name.

A function takes a seed and the settings of its task and returns numbers, or lists of numbers for a drawing. It uses the
library as any user would: `psilearn.datasets`, the estimators, the paths. The estimators are imported when a task runs,
so that listing the experiments stays cheap.

Tests: tests/app/test_experiments.py.
"""
