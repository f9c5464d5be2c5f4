"""`python -m kneepoint` is `knee`."""

from kneepoint.cli import main

main()
