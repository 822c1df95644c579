"""The reading: what a question means."""
