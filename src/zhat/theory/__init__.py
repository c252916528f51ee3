"""The paper's theory as numbers: the rates of its theorems, and the quantities that its proofs are made of.

`theorems` has the exponents of Theorems 1 to 4 and Table 1. The others are what the proofs of the upper bounds put
together, with their constants: the variance of the second batch's residual (`residual`), the maximum information gain
γ_T (`information`), and how far a surrogate can be from a function of bounded norm (`confidence`).
"""

from zhat.theory.confidence import SupErrorBound, confidence_factor, greedy_sd_bound, sup_error_bound
from zhat.theory.information import InformationGain, greedy_information_gain, information_gain, information_gain_rate
from zhat.theory.residual import (
    ResidualVariance,
    chebyshev_bound,
    first_batch_error_bound,
    residual_variance,
    variance_bound,
)
from zhat.theory.theorems import (
    EXPONENT_TOLERANCE,
    Bound,
    Condition,
    Kind,
    Method,
    Rates,
    Regime,
    TableRow,
    Term,
    format_rates,
    format_table1,
    rates,
    regime,
    table1,
)

__all__ = [
    "EXPONENT_TOLERANCE",
    "Bound",
    "Condition",
    "InformationGain",
    "Kind",
    "Method",
    "Rates",
    "Regime",
    "ResidualVariance",
    "SupErrorBound",
    "TableRow",
    "Term",
    "chebyshev_bound",
    "confidence_factor",
    "first_batch_error_bound",
    "format_rates",
    "format_table1",
    "greedy_information_gain",
    "greedy_sd_bound",
    "information_gain",
    "information_gain_rate",
    "rates",
    "regime",
    "residual_variance",
    "sup_error_bound",
    "table1",
    "variance_bound",
]
