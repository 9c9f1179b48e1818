"""Benchmarks: how fast, how small, how soon. `python -m tests.bench --help`. Not timed tests."""
