"""Problems with an l1 part by an interior point and a crossover to a vertex."""
