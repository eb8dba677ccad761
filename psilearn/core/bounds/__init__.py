"""Lower bounds that hold in real arithmetic: exact repair of multipliers, rounding to the safe side, corrections."""
