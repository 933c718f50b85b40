"""How requests travel: an own HTTP/1.1 client, and aiohttp for what goes through a proxy."""
