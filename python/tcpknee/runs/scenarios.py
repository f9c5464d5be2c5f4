"""The scenarios that come with tcpknee: one per published claim or named experiment."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "gallery"


def names() -> list[str]:
    """Names of all, sorted."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


def path(name: str) -> Path:
    """The file of one of `names`."""
    return _FOLDER / f"{name}.toml"


def kernel_path(name: str) -> Path:
    """The file that the kernel engine runs in its place, of the few whose own asks for hosts of the model."""
    return _FOLDER / "kernel" / f"{name}.toml"
