"""The reading: what a question means, read once; everything behind it reads fields, not text."""
