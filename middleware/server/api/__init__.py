"""What FastAPI serves beside the hot doors, and the pages that describe all of it.

FastAPI and what it makes of our shapes cost a third of a start and 10 MB, and a chat passes none of
it: so nothing is loaded here before an address of its own is asked (`transport/late.py`).
"""
