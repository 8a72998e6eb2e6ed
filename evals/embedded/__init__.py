"""Stand-ins for the outside world: a Langfuse-compatible store and a scripted model, both on loopback."""
