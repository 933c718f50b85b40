"""Bytes to and from upstreams: the transport, frames, and one exchange with its honest ending."""
