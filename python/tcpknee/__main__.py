"""`python -m tcpknee` is `knee`."""

from tcpknee.cli import main

main()
