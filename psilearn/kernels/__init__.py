"""The only numba: plain functions, arrays in, arrays out."""
