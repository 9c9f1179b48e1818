"""Rows: tables, their columns and keys in forms that both servers compute alike, chunks, rounds, and the script that repairs."""
