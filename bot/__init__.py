"""The question: gate, retrieval, loop, evidence, verdict, answer, and the places people ask from."""
