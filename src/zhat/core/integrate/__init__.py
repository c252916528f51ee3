"""log ∫ e^{-λg} of a cheap g, with its error, and draws from e^{-λg}."""
