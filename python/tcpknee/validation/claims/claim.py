"""A published claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

ENGINES = MappingProxyType({"sim": "the simulator", "kernel": "the host's kernel"})
"""How a reader knows them."""

BOTH = tuple(ENGINES)


@dataclass(frozen=True)
class OnKernel:
    """How the kernel engine runs a claim whose scenario is about hosts of the model: the scenario of that name in
    `gallery/kernel`, with these instruments. `shows` and `limits` are as those of the claim."""

    shows: tuple[tuple[str, str], ...]
    measure: tuple[str, ...] = ()
    limits: str = ""


@dataclass(frozen=True)
class Claim:
    """`id` is the name of its scenario, if it has one. `figure` is what the article printed, "" if nothing. `shows` are
    values of ours to stand beside it, as (label, expression of one value). `check` names one of `checks`. `quick` has
    the keys that the short form sets otherwise, by their path, as TOML. `engines` can run it: of a claim without a
    scenario, "sim" means that no kernel has a part in it. `scenario_engines` are those that run its scenario; the
    others run its check alone. `on_kernel`: the kernel engine runs a scenario of its own. `limits` is what is missing
    here, for readers of a verdict other than "reproduced"; `needs` is why the other engine cannot run it."""

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
    limits: str = ""
    needs: str = ""


def at(flow: str, metric: str, **axes: str) -> str:
    """`bbr1[path.loss="1.5%"].goodput`; `__` of a keyword stands for a dot."""
    index = ", ".join(f'{key.replace("__", ".")}="{value}"' for key, value in axes.items())
    return f"{flow}[{index}].{metric}" if index else f"{flow}.{metric}"
