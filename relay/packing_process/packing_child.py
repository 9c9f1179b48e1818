"""The process that packs: it takes orders from the relay over the socket that it was started with, until that ends.

It gets open files and no names: what it still writes after its relay was killed goes to a file that has no name.
"""

import os
import select
import socket
import sys
import traceback
from typing import Final

from relay.archive.storage.files import FileLayer
from relay.packing_process.packed_copy import CopyFailed, CopyStopped, PackedCopy, write_copy
from relay.packing_process.packing_messages import receive_order, send_failure, send_made
from relay.packing_process.throttle import Throttle, processor_time_of, take_least_claim

URGENT: Final = "urgent"


def main() -> None:
    """Run the command line: the descriptor of the socket, and whether packing is urgent."""
    is_urgent = sys.argv[2] == URGENT
    take_least_claim(urgent=is_urgent)
    relay = os.getppid()
    with socket.socket(fileno=int(sys.argv[1])) as link:
        watched = select.poll()
        # Nothing but the end comes while an order is being carried out.
        watched.register(link, select.POLLIN)

        def stops(pause_s: float) -> bool:
            return bool(watched.poll(pause_s * 1000))

        while (given := receive_order(link)) is not None:
            order, keys, files = given
            way = Throttle(stops, processor_time_of(relay), pauses_s=order.pauses_s)
            done: PackedCopy | CopyFailed | OSError | str
            try:
                done = write_copy(FileLayer(), files, order, keys, way)
            except CopyStopped:
                return
            except (CopyFailed, OSError) as error:
                done = error
            except Exception:
                done = traceback.format_exc()
            for fd in (files.plain, files.packed, files.index):
                if fd >= 0:
                    os.close(fd)
            if isinstance(done, PackedCopy):
                send_made(link, done, way.paused_s)
            else:
                send_failure(link, done)


if __name__ == "__main__":
    main()
