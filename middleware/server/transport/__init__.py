"""The HTTP side: the socket, what is no HTTP, hosts, bodies in, frames out."""
