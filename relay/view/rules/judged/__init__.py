"""Statements are judged by what the survey of servers says of the constructs that they are made of."""
