"""Statistics of clustered connections, in one pass and mergeable. Numbers in, numbers out: no files, no tables."""

from .bins import Bins
from .carried import packed, unpacked
from .covariates import covariate_adjusted, minus
from .decisions import Mismatch, adjust, least_difference, mismatch, non_inferior
from .designs import Effect, ab, by_cluster, paired_link, ramp, switchback
from .hashes import SEED_MAX, cluster_hashes
from .intervals import FEW, Interval, difference, mean, quantile, ratio, share_below
from .sequence import Moments, always
from .tally import Clusters, Tally, tally, tally_of_groups

__all__ = [
    "FEW",
    "SEED_MAX",
    "Bins",
    "Clusters",
    "Effect",
    "Interval",
    "Mismatch",
    "Moments",
    "Tally",
    "ab",
    "adjust",
    "always",
    "by_cluster",
    "cluster_hashes",
    "covariate_adjusted",
    "difference",
    "least_difference",
    "mean",
    "minus",
    "mismatch",
    "non_inferior",
    "packed",
    "paired_link",
    "quantile",
    "ramp",
    "ratio",
    "share_below",
    "switchback",
    "tally",
    "tally_of_groups",
    "unpacked",
]
