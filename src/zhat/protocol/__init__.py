"""What an estimator is, and what several of them need."""
