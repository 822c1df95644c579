"""Benchmarks as ratios of one run: of answering, of indexing, of searching, and of answering while the index is rebuilt."""
