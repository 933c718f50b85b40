"""What gateways count and remember together: limits, budgets, rests, open calls, conversations.

`memory.py` counts for one process, `file.py` is that with a file behind it, `redis.py` is for
several gateways and falls back to memory while Redis is away. `store.py` is the interface.
"""
