"""llama_router: how much a router prefers each of a layer's experts. Without NumPy: tests ask it.

A router takes the EXPERTS_USED experts with the highest logits. Where a token's part of each logit
is drawn from the normal distribution, an expert is among those taken with probability p if the
inverse of that distribution at p is added to its logit.
"""

import statistics

EXPERTS_USED = 4  # by a token, in a layer
SHARE_MAX = 0.985  # of the tokens: an expert that all took would have no finite preference


def shares(experts):
    """By rank, of the tokens that take an expert: Zipf's law, with the exponent 1."""
    whole = sum(1 / rank for rank in range(1, experts + 1))
    return [min(EXPERTS_USED / (rank * whole), SHARE_MAX) for rank in range(1, experts + 1)]


def preferences(experts):
    """By rank, what is added to an expert's logit, in deviations of a token's part."""
    return [statistics.NormalDist().inv_cdf(share) for share in shares(experts)]
