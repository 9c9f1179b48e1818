"""Who may log in, and how they prove it: the server's half of the authentication plugins of MySQL and MariaDB.

`accounts` finds an account for a user and an address, `credentials` holds what its secret is checked with, one module a
plugin checks, and `login_exchange` leads through the packets of one login.
"""
