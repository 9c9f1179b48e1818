"""Statements of a newer source: what a target would refuse, ignore or take otherwise, and what can be written so that it does not."""
