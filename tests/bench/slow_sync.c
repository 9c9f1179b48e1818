/* Syncs that take as long as those of a disk: preloaded into a server whose data may be in memory.
   Each waits SLOW_SYNC_US microseconds; those of several threads wait side by side. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    static long microseconds = -1;
    if (microseconds < 0) {
        const char *given = getenv("SLOW_SYNC_US");
        microseconds = given ? atol(given) : 0;
    }
    struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};
    while (nanosleep(&left, &left) != 0)
        ;
}

int fsync(int fd)
{
    wait_for_disk();
    return syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return syscall(SYS_fdatasync, fd);
}
