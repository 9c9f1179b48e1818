/* A replica that throws its stream away, as lean as can be, so that what is measured is the server.
 *
 *   dump_client count FD                 one stream, packet by packet, until EOF; prints bytes and packets before that
 *   dump_client drain BYTES FD...        reads until each has had BYTES (0: until standard input ends); prints seconds
 *   dump_client commits COUNT FD_A FD_B  two streams of the same source; prints when each Xid event came
 *
 * Each descriptor is a logged-in connection; its dump command comes on standard input: 2 bytes length, packet. All are
 * sent at once when all were read, and the clock starts there. Output is one JSON object. tests/bench/dump_client.py is
 * the twin for machines without a compiler.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 1024
#define LONGEST 4096
#define STEP (256 << 10)
static uint8_t buffer[STEP];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    fprintf(stderr, "dump_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void read_exactly(uint8_t *to, size_t count) {
    while (count) {
        ssize_t n = read(0, to, count);
        if (n <= 0) fail("standard input ended");
        to += n;
        count -= n;
    }
}

static double send_commands(int *fds, int count) {
    static uint8_t packets[MOST][LONGEST];
    static int sizes[MOST];
    for (int i = 0; i < count; i++) {
        uint8_t head[2];
        read_exactly(head, 2);
        sizes[i] = head[0] | head[1] << 8;
        if (sizes[i] > LONGEST) fail("a command is too long");
        read_exactly(packets[i], sizes[i]);
    }
    double start = now();
    for (int i = 0; i < count; i++)
        if (write(fds[i], packets[i], sizes[i]) != sizes[i]) fail("the command could not be sent");
    return start;
}

/* A walker over packets that come in any pieces. */
struct walk {
    uint8_t head[12]; /* packet header, status byte, timestamp, type */
    int have;
    uint32_t skip; /* bytes of the packet behind `head` */
    uint64_t packets, bytes; /* whole packets, EOF not among them */
    int ended;
    int xid; /* the packet whose last byte was just read is an Xid event */
};

static int walk(struct walk *w, const uint8_t *p, size_t n, int (*on_packet)(struct walk *, void *), void *arg) {
    size_t at = 0;
    for (;;) {
        if (w->have == 10 && w->skip == 0) {
            w->have = 0;
            w->packets++;
            w->bytes += 4 + (w->head[0] | w->head[1] << 8 | (uint32_t)w->head[2] << 16);
            if (on_packet && on_packet(w, arg)) return 1;
        }
        if (at == n) return 0;
        if (w->have < 10) {
            w->head[w->have++] = p[at++];
            uint32_t size = w->head[0] | w->head[1] << 8 | (uint32_t)w->head[2] << 16;
            if (w->have >= 5 && (w->head[4] == 0xff || (w->head[4] == 0xfe && size < 9))) {
                w->ended = w->head[4];
                return 1;
            }
            if (w->have == 10) {
                w->skip = size - 6;
                w->xid = w->head[9] == 16;
            }
            continue;
        }
        size_t take = n - at < w->skip ? n - at : w->skip;
        at += take;
        w->skip -= take;
    }
}

static int count_stream(int fd) {
    static struct walk w;
    double start = send_commands(&fd, 1);
    for (;;) {
        ssize_t n = recv(fd, buffer, STEP, 0);
        if (n <= 0) fail("the stream broke off");
        if (walk(&w, buffer, n, NULL, NULL)) break;
    }
    if (w.ended == 0xff) {
        errno = 0;
        fail("the server answered with an error");
    }
    printf("{\"bytes\": %llu, \"packets\": %llu, \"seconds\": %.6f}\n", (unsigned long long)w.bytes,
           (unsigned long long)w.packets, now() - start);
    return 0;
}

static int drain(uint64_t wanted, int *fds, int count) {
    static uint64_t had[MOST];
    double start = send_commands(fds, count), last = start;
    int open_streams = count;
    if (count == 1 && wanted) {
        while (had[0] < wanted) {
            ssize_t n = recv(fds[0], buffer, STEP, 0);
            if (n <= 0) fail("the stream broke off");
            had[0] += n;
        }
        last = now();
    } else {
        int ep = epoll_create1(0);
        struct epoll_event events[64], one = {.events = EPOLLIN};
        for (int i = 0; i < count; i++) {
            one.data.u32 = i;
            epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &one);
        }
        one.data.u32 = MOST;
        if (!wanted) epoll_ctl(ep, EPOLL_CTL_ADD, 0, &one);
        while (open_streams) {
            int ready = epoll_wait(ep, events, 64, -1);
            for (int k = 0; k < ready; k++) {
                uint32_t i = events[k].data.u32;
                if (i == MOST) {
                    open_streams = 0;
                    break;
                }
                ssize_t n = recv(fds[i], buffer, STEP, MSG_DONTWAIT);
                if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
                if (n <= 0) fail("a stream broke off");
                had[i] += n;
                if (wanted && had[i] >= wanted) {
                    epoll_ctl(ep, EPOLL_CTL_DEL, fds[i], NULL);
                    open_streams--;
                }
            }
        }
        last = now();
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    uint64_t sum = 0, least = UINT64_MAX;
    for (int i = 0; i < count; i++) {
        sum += had[i];
        if (had[i] < least) least = had[i];
    }
    printf("{\"bytes\": %llu, \"least\": %llu, \"seconds\": %.6f, \"cpu\": %.6f}\n", (unsigned long long)sum,
           (unsigned long long)least, last - start,
           used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6);
    return 0;
}

struct arrivals {
    double *times;
    int count, wanted;
    double moment;
};

static int note(struct walk *w, void *arg) {
    struct arrivals *a = arg;
    if (w->xid && a->count < a->wanted) a->times[a->count++] = a->moment;
    return 0;
}

static int commits(int wanted, int *fds) {
    static struct walk walks[2];
    struct arrivals seen[2];
    for (int i = 0; i < 2; i++) seen[i] = (struct arrivals){calloc(wanted, sizeof(double)), 0, wanted, 0};
    send_commands(fds, 2);
    struct pollfd polled[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    fprintf(stderr, "ready\n");
    while (seen[0].count < wanted || seen[1].count < wanted) {
        if (poll(polled, 2, 20000) <= 0) fail("no more commits came");
        for (int i = 0; i < 2; i++) {
            if (!polled[i].revents) continue;
            ssize_t n = recv(fds[i], buffer, STEP, MSG_DONTWAIT);
            if (n < 0 && errno == EAGAIN) continue;
            if (n <= 0) fail("a stream broke off");
            seen[i].moment = now();
            if (walk(&walks[i], buffer, n, note, &seen[i])) fail("a stream ended");
        }
    }
    for (int i = 0; i < 2; i++) {
        printf(i ? ", \"second\": [" : "{\"first\": [");
        for (int k = 0; k < wanted; k++) printf(k ? ",%.7f" : "%.7f", seen[i].times[k]);
        printf("]");
    }
    printf("}\n");
    return 0;
}

int main(int argc, char **argv) {
    int fds[MOST];
    if (argc == 3 && !strcmp(argv[1], "count")) return count_stream(atoi(argv[2]));
    if (argc < 4 || argc - 3 > MOST) return 2;
    for (int i = 3; i < argc; i++) fds[i - 3] = atoi(argv[i]);
    if (!strcmp(argv[1], "drain")) return drain(strtoull(argv[2], NULL, 10), fds, argc - 3);
    if (!strcmp(argv[1], "commits") && argc == 5) return commits(atoi(argv[2]), fds);
    return 2;
}
