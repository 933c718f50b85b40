"""What is of this machine, whatever its workers: marks of breakers, slots and their queues.

`board.py` is the interface, `memory.py` its home in one process; with several workers the home is
in the process that supervises them, and `remote.py` asks it.
"""
