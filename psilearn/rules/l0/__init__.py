"""L0-RBoost: the tightened relaxation of the L0 penalty."""
