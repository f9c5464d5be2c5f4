"""Prints what the package needs of Python's, a line each, as pyproject.toml declares it."""

from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

if __name__ == "__main__":
    print(*tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"], sep="\n")
