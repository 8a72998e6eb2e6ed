"""What Langfuse sees. The only part that talks to Langfuse; whatever it does there never changes an outcome."""
