"""What is asked: the domain and its prior, the energy, the facts, and the task that an estimator sees."""
