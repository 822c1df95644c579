"""What comes before a question: documents, chunks, vectors, the index, the rules found in text, the ticket tables."""
