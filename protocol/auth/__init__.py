"""Who may log in, and how they prove it: the server's half of the authentication plugins of MySQL and MariaDB.

`accounts` finds an account for a user and an address, `credentials` contains what its secret is checked with, one module a plugin
checks it, and `login_exchange` leads through the packets of one login.
"""
