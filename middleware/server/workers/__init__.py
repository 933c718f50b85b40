"""Several processes that serve one port, as if they were one.

`supervisor.py` is the process above them: it has the socket, starts them, and is their hub
(`machine/hub.py`). `worker.py` is where one of them begins, `member.py` is its side of the hub.
With one worker nothing of this is loaded.
"""
