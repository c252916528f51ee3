"""What a user gets back: the estimate, its curve, plan and certificate, comparisons, files and exports."""
