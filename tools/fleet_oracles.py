"""What other libraries say of `data()`: tests/python/fleet_oracles.json, for tests/python/test_fleet_oracles.py.

They need other versions of numpy and pandas than tcpknee, so each has an environment of its own and its results are
stored:

    python -m venv ../of-gbstats && ../of-gbstats/bin/pip install gbstats==0.8.0
    ../of-gbstats/bin/python tools/fleet_oracles.py gbstats
    python -m venv ../of-spotify && ../of-spotify/bin/pip install spotify-confidence==4.1.0
    ../of-spotify/bin/python tools/fleet_oracles.py spotify-confidence
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[1] / "tests/python/fleet_oracles.json"


def data() -> dict[str, Any]:
    """Clusters of two arms: connections, the sum of their values, the mean of the period before. Made without a
    generator of random numbers, whose draws differ between versions."""

    def spread(number: int, step: float) -> float:
        return (number * step) % 1.0

    arms: dict[str, Any] = {}
    for arm, count, effect, start in (("treated", 90, 0.25, 7), ("control", 70, 0.0, 1007)):
        clusters = []
        for number in range(start, start + count):
            before = 3 + 2 * spread(number, 0.6180339887)
            connections = 1 + int(12 * spread(number, 0.4142135624) ** 2)
            own = before + effect
            values = [round(own + 4 * spread(31 * number + i, 0.7320508076) ** 3, 6) for i in range(connections)]
            clusters.append({"before": round(before, 6), "values": values})
        arms[arm] = clusters
    return arms


def of_gbstats(arms: dict[str, Any]) -> dict[str, Any]:
    from gbstats.frequentist.tests import FrequentistConfig, SequentialConfig, SequentialTwoSidedTTest, TwoSidedTTest
    from gbstats.models.statistics import (
        QuantileClusteredStatistic,
        RatioStatistic,
        RegressionAdjustedStatistic,
        SampleMeanStatistic,
    )
    from gbstats.utils import check_srm

    def sums(values: list[float]) -> Any:
        return SampleMeanStatistic(n=len(values), sum=sum(values), sum_squares=sum(value**2 for value in values))

    def means(arm: str) -> list[float]:
        return [sum(one["values"]) / len(one["values"]) for one in arms[arm]]

    def weighted(arm: str) -> Any:
        totals, counts = [sum(one["values"]) for one in arms[arm]], [float(len(one["values"])) for one in arms[arm]]
        product = sum(total * count for total, count in zip(totals, counts, strict=True))
        return RatioStatistic(
            n=len(totals), m_statistic=sums(totals), d_statistic=sums(counts), m_d_sum_of_products=product
        )

    def adjusted(arm: str) -> Any:
        before = [one["before"] for one in arms[arm]]
        product = sum(one * other for one, other in zip(means(arm), before, strict=True))
        return RegressionAdjustedStatistic(
            n=len(before),
            post_statistic=sums(means(arm)),
            pre_statistic=sums(before),
            post_pre_sum_of_products=product,
            theta=0,
        )

    def middle(arm: str) -> Any:
        rows = sorted(value for one in arms[arm] for value in one["values"])
        half = 1.959964 * math.sqrt(0.25 / len(rows))
        median, low, high = (rows[int((0.5 + side * half) * len(rows))] for side in (0, -1, 1))
        below = [float(sum(value <= median for value in one["values"])) for one in arms[arm]]
        counts = [float(len(one["values"])) for one in arms[arm]]
        return QuantileClusteredStatistic(
            n=len(rows),
            n_star=len(rows),
            nu=0.5,
            quantile_hat=median,
            quantile_lower=low,
            quantile_upper=high,
            main_sum=sum(below),
            main_sum_squares=sum(one**2 for one in below),
            denominator_sum=sum(counts),
            denominator_sum_squares=sum(one**2 for one in counts),
            main_denominator_sum_product=sum(one * other for one, other in zip(below, counts, strict=True)),
            n_clusters=len(counts),
        )

    def told(test: Any) -> dict[str, float]:
        low, high = test.confidence_interval
        return {"value": test.point_estimate, "low": low, "high": high, "p_value": test.p_value}

    plain = FrequentistConfig(difference_type="absolute")
    sequential = SequentialConfig(difference_type="absolute", sequential_tuning_parameter=500)
    both = sums(means("control")), sums(means("treated"))
    median = middle("control")
    return {
        "means": told(TwoSidedTTest(*both, plain)),
        "weighted means": told(TwoSidedTTest(weighted("control"), weighted("treated"), plain)),
        "adjusted means": told(TwoSidedTTest(adjusted("control"), adjusted("treated"), plain)),
        "always, 500 planned": told(SequentialTwoSidedTTest(*both, sequential)),
        "median of control": {"value": median.quantile_hat, "error": math.sqrt(median.variance / median.n)},
        "mismatch": check_srm([len(arms["treated"]), len(arms["control"])], [0.5, 0.5]),
    }


def of_spotify(arms: dict[str, Any]) -> dict[str, Any]:
    import pandas as pd
    from spotify_confidence import StudentsTTest

    rows = []
    for arm, clusters in arms.items():
        for half in (0, 1):
            values = [sum(one["values"]) / len(one["values"]) for one in clusters[half::2]]
            rows.append(
                {"arm": arm, "half": half, "n": len(values), "sum": sum(values), "squares": sum(v**2 for v in values)}
            )
    frame = pd.DataFrame(rows)

    def test(frame: Any, groups: list[str], **more: Any) -> Any:
        return StudentsTTest(
            frame,
            numerator_column="sum",
            numerator_sum_squares_column="squares",
            denominator_column="n",
            categorical_group_columns=groups,
            interval_size=0.95,
            **more,
        )

    def told(found: Any) -> list[dict[str, float]]:
        names = {"value": "difference", "low": "ci_lower", "high": "ci_upper", "p_value": "p-value"}
        return [{name: float(row[column]) for name, column in names.items()} for _, row in found.iterrows()]

    whole = frame.drop(columns="half").groupby("arm", as_index=False).sum()
    halves = test(frame, ["arm", "half"], correction_method="fdr_bh")
    several = halves.difference(level_1="control", level_2="treated", groupby="half")
    return {
        "means": told(test(whole, ["arm"]).difference(level_1="control", level_2="treated"))[0],
        "halves": told(several),
        "halves corrected": [float(p) for p in several["adjusted p-value"]],
    }


SAID = {"gbstats": of_gbstats, "spotify-confidence": of_spotify}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in SAID:
        raise SystemExit(f"usage: python tools/fleet_oracles.py {' | '.join(SAID)}")
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    stored = {**stored, sys.argv[1]: SAID[sys.argv[1]](data())}
    FILE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
