"""Record and replay: what clients asked, what upstreams said, kept in files that people read."""
