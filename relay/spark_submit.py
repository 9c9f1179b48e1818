"""The audits under spark-submit: `spark-submit … submit.py NAME ARCHIVE --out DIR`, as `binlog-relay audit` takes them.

The session, its master and its memory are spark-submit's. The executors read ARCHIVE, and write DIR, at the same path.
"""

import sys

from relay.cli.command_line import main

if __name__ == "__main__":
    sys.argv[1:1] = ["audit"]
    main()
