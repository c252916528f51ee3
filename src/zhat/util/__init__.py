"""Small things that know nothing of estimates: checks, texts, files, threads."""
