"""A published claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

ENGINES = MappingProxyType({"sim": "the simulator", "kernel": "the host's kernel"})
"""How a reader knows them."""

BOTH = tuple(ENGINES)

EQUIVALENT = "equivalent"
"""How the verdict begins that there is no difference."""


@dataclass(frozen=True)
class OnKernel:
    """How the kernel engine runs a claim whose scenario is about hosts of the model: the scenario of that name in
    `gallery/kernel`, with these instruments. `shows` is as that of the claim."""

    shows: tuple[tuple[str, str], ...]
    measure: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alike:
    """What would show that the difference of which a claim speaks is not there: these ratios, at each value of the axes
    that they leave open, are 1 within `margin` with their whole intervals. `reason` says why so much is no difference.
    """

    ratios: tuple[str, ...]
    margin: float
    reason: str

    @property
    def word(self) -> str:
        """The verdict."""
        return f"{EQUIVALENT} within {100 * self.margin:g} %"


@dataclass(frozen=True)
class Claim:
    """`id` is the name of its scenario, if it has one. `figure` is what the article printed, "" if nothing. `shows`
    are values of ours to stand beside it, as (label, expression of one value). `check` names one of `checks`. `quick`
    has the keys that the short form sets otherwise, by their path, as TOML. `engines` can run it: of a claim without a
    scenario, "sim" means that no kernel has a part in it. `scenario_engines` are those that run its scenario; the
    others run its check alone. `on_kernel`: the kernel engine runs a scenario of its own. `limits` is why an engine
    does not reproduce it, or on what its verdict depends, by the engine; `alike` what else it may show. `unit` is what
    its evidence is counted in, `needs` is why the other engine cannot run it."""

    id: str
    article: str
    claim: str
    shape: str
    figure: str = ""
    shows: tuple[tuple[str, str], ...] = ()
    engines: tuple[str, ...] = BOTH
    has_scenario: bool = True
    scenario_engines: tuple[str, ...] = BOTH
    on_kernel: OnKernel | None = None
    check: str | None = None
    quick: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    limits: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    alike: Mapping[str, Alike] = field(default_factory=lambda: MappingProxyType({}))
    unit: str = "repetitions"
    needs: str = ""


def by_engine(**reasons: str) -> Mapping[str, str]:
    """`limits` of a claim: `by_engine(sim="...", kernel="...")`."""
    return MappingProxyType(reasons)


def at(flow: str, metric: str, **axes: str) -> str:
    """`bbr1[path.loss="1.5%"].goodput`; `__` of a keyword stands for a dot."""
    index = ", ".join(f'{key.replace("__", ".")}="{value}"' for key, value in axes.items())
    return f"{flow}[{index}].{metric}" if index else f"{flow}.{metric}"
