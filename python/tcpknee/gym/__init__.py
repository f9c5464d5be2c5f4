"""Environments for learners: a connection of the simulator whose window, or pacing rate, an agent decides.

    from tcpknee.gym import CongestionEnv
    env = CongestionEnv("path.toml", decide="round", actions=["snd_cwnd_factor"], reward="power")

It takes the extra `gym` (gymnasium). docs/gym.md is the page.
"""

from __future__ import annotations

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise ImportError(
        "tcpknee.gym needs the package gymnasium, which this Python has not; expected the extra gym. In tcpknee's tree "
        "say pip install '.[gym]', else pip install 'WHEEL[gym]' with the path of the wheel."
    ) from error

from .env import CongestionEnv
from .task import CONTROLS, FIELDS, REWARDS, TRUTH
from .vector import CongestionVectorEnv

__all__ = ["CONTROLS", "FIELDS", "REWARDS", "TRUTH", "CongestionEnv", "CongestionVectorEnv"]

gymnasium.register(
    "tcpknee/Congestion-v0",
    entry_point="tcpknee.gym:CongestionEnv",
    vector_entry_point="tcpknee.gym:CongestionVectorEnv",
)
