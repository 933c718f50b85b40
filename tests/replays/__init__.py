"""Cassettes of this gateway's own, one for each kind of upstream and for what is made of several.

`make verify` looks whether this version still sends and reads what is in them. `python -m
tests.replays` asks again what they were recorded of (`scenes.py`), and changes only turns that come
to something else: a cassette that is to be made anew has to be removed first.
"""
