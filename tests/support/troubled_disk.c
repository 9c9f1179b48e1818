/* A disk in trouble, preloaded into a relay. While the file TROUBLED_DISK.slow is there each sync takes 0.8 s; while
   TROUBLED_DISK.stuck is there nobody is told how much of the disk is free. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int in_trouble(const char *kind)
{
    char path[4096];
    const char *place = getenv("TROUBLED_DISK");
    if (place == NULL)
        return 0;
    snprintf(path, sizeof path, "%s.%s", place, kind);
    return access(path, F_OK) == 0;
}

static void rest(long milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

static void sync_slowly(void)
{
    if (in_trouble("slow"))
        rest(800);
}

int fsync(int fd)
{
    sync_slowly();
    return syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    sync_slowly();
    return syscall(SYS_fdatasync, fd);
}

int statvfs(const char *path, struct statvfs *found)
{
    static int (*real)(const char *, struct statvfs *);
    if (real == NULL)
        real = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    while (in_trouble("stuck"))
        rest(50);
    return real(path, found);
}

int statvfs64(const char *path, struct statvfs64 *found)
{
    static int (*real)(const char *, struct statvfs64 *);
    if (real == NULL)
        real = (int (*)(const char *, struct statvfs64 *))dlsym(RTLD_NEXT, "statvfs64");
    while (in_trouble("stuck"))
        rest(50);
    return real(path, found);
}
