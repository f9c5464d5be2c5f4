"""Prints what the package needs of Python's, a line each, as pyproject.toml declares it: dependencies.py [EXTRA...]

With extras, what those need; without any, what the package itself needs.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [line for name in sys.argv[1:] for line in extras[name]] if sys.argv[1:] else project["dependencies"]
    print(*wanted, sep="\n")
