"""The claims about fleets: many connections, of which some share a bottleneck."""

from __future__ import annotations

from types import MappingProxyType

from .claim import Claim, at


def _mixed(who: str, treated: int) -> str:
    """Goodput of a group when so many of the ten flows have BBR and the others CUBIC."""
    return at(
        who,
        "goodput",
        flow__0__algorithm="bbr1",
        flow__0__count=str(treated),
        flow__1__algorithm="cubic",
        flow__1__count=str(10 - treated),
    )


def _uniform(algorithm: str, first: int) -> str:
    """Goodput of the link when all ten flows have one algorithm; `first` of them are in the first group."""
    return at(
        "total",
        "goodput",
        flow__0__algorithm=algorithm,
        flow__0__count=str(first),
        flow__1__algorithm=algorithm,
        flow__1__count=str(10 - first),
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "ab-bias",
        "F",
        "an A/B test by connection on a shared bottleneck misjudges, even in sign",
        "treatment ÷ control per flow > 1.3 at 10 % allocation and < 0.8 at 90 % (or the other way), while all-on ÷ "
        "all-off is within 5 %",
        "+150 % and -75 %, identical when used by all",
        (
            *(
                (
                    f"{10 * treated} % treated",
                    f"{_mixed('treatment', treated)} / {_mixed('control', treated)} * {factor}",
                )
                for treated, factor in ((1, "9"), (5, "1"), (9, "0.1111"))
            ),
            ("all ÷ none", f"{_uniform('bbr1', 9)} / {_uniform('cubic', 1)}"),
        ),
        quick=MappingProxyType({"repeat": "3", "duration": '"60s"', "warmup": '"20s"'}),
    ),
)
