"""What several methods share: surfaces of the energy, what they are made of, and the curve over λ."""
