"""Mathematics of restricted Boltzmann machines, independent of scikit-learn."""
