"""A launcher that becomes another program, which dies with its parent: `python -I -S launch.py PARENT UID GID PROGRAM...`.

It is a separate small program, because a function between fork and exec is unsafe in a process with threads. The order matters: the
kernel forgets the parent-death signal when credentials change, so it is requested after that.
"""

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1


def become(parent: int, uid: int, gid: int, program: list[str]) -> None:
    """Replace this process by `program`, run as uid:gid, killed when its parent's starting thread ends."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    # Without prctl (not Linux) the server simply outlives a parent that was killed.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the process that asked for this server has ended")
    os.execv(program[0], program)


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
