"""OpenAI's Responses API: what goes in, what comes out, and what is kept between."""
