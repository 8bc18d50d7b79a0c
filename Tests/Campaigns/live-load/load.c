// Many WebSockets and a stream of posts from one thread, so that the load of a measurement costs
// little beside what is measured. It speaks to loopback only, and ends with its standard input.
//
//   load PORT PATH PROTOCOL HELLOS      (HELLOS: a file, one hello a line; "-" for none)
//
// Commands, one a line; each answers one line of JSON:
//   connect FROM COUNT WINDOW  opens sockets, WINDOW of them under way at a time
//   clear                      forgets what was received
//   wait COUNT SECONDS         until so many messages came
//   post PORT PATH RATE SECONDS FILE CHOICES   posts FILE, with @N@ counted up, @T@ the moment, and
//                              @U@, @S@ and @R@ numbers below CHOICES, 400 and 100,000, and
//                              @M@ the last @U@ modulo 400
//   report                     how many messages, how late, what was missing or came twice
//   stall FROM COUNT | read FROM COUNT          stops and begins to read
//   abandon                    closes all
//   leave SECONDS              waits until all were closed; says when, and when they were to return
//   rest SECONDS               goes on reading
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NONE, CONNECTING, UPGRADING, GREETING, READY, GONE };

typedef struct {
    int fd, state, isClosed, isStalled;
    char *rest;
    size_t restCount;
    char at[64], fingerprint[20];
    int isComplete;
    // Which posts it was told of, by their numbers since the last `clear`.
    uint64_t *seen;
    uint32_t seenCount;
} Socket;

typedef struct {
    int fd, isBusy, isThere;
    char head[512];
    size_t headCount;
} Poster;

enum { MOST = 120000, POSTERS = 32, PART = 1 << 20, NUMBERS = 1 << 15 };

static Socket sockets[MOST];
static Poster posters[POSTERS];
static char **hellos;
static int helloCount, poll_, port;
static const char *path, *protocol;
static char *part;
static uint32_t *late;
static size_t lateCount, lateRoom;
static uint64_t messages, doubled, resets, cleared;
static int ready, refused, lost, underWay, acknowledged, refusedPosts;
static uint64_t serial, chance = 88172645463325252ull;
static uint64_t leaving;
enum { SECONDS = 600 };
static int left[SECONDS], returns[SECONDS], leftCount;

static uint64_t now(void) {
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return (uint64_t)moment.tv_sec * 1000000000ull + (uint64_t)moment.tv_nsec;
}

static uint64_t draw(void) {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return chance;
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(int fd, uint32_t events, uint64_t tag, int operation) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    if (epoll_ctl(poll_, operation, fd, &event)) fail("epoll_ctl");
}

static int dial(int to, uint64_t tag) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0) fail("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // One address has 28,000 ports for clients: further ones begin at the next address.
    uint32_t source = INADDR_LOOPBACK + (uint32_t)((tag & 0xFFFFFF) / 20000);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
    if (source != INADDR_LOOPBACK && bind(fd, (struct sockaddr *)&from, sizeof from)) fail("bind");
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)to),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static void end(Socket *one) {
    if (one->state == NONE || one->state == GONE) return;
    if (one->state == READY) ready--, lost++;
    else underWay--, refused++;
    if (!one->isClosed) close(one->fd);
    one->isClosed = 1;
    one->state = GONE;
    free(one->rest);
    one->rest = NULL, one->restCount = 0;
}

static void put(Socket *one, const char *bytes, size_t count) {
    // What is said is small: a buffer that does not take it belongs to a socket that is stuck.
    if (send(one->fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) end(one);
}

static void say(Socket *one, int opcode, const char *text, size_t count) {
    char *frame = malloc(count + 14);
    size_t head = 2;
    frame[0] = (char)(0x80 | opcode);
    if (count < 126) frame[1] = (char)(0x80 | count);
    else frame[1] = (char)0xFE, frame[2] = (char)(count >> 8), frame[3] = (char)count, head = 4;
    memset(frame + head, 0, 4);
    memcpy(frame + head + 4, text, count);
    put(one, frame, head + 4 + count);
    free(frame);
}

static void greet(Socket *one) {
    if (!helloCount) {
        one->state = READY, underWay--, ready++;
        return;
    }
    const char *hello = hellos[(one - sockets) % helloCount];
    const char *place = strstr(hello, "@RESUME@");
    char text[8192], resume[160] = "";
    if (one->at[0] && one->fingerprint[0])
        snprintf(resume, sizeof resume, ",\"since\":\"%s\",\"fingerprint\":\"%s\"", one->at,
                 one->fingerprint);
    int count = place ? snprintf(text, sizeof text, "%.*s%s%s", (int)(place - hello), hello, resume,
                                 place + 8)
                      : snprintf(text, sizeof text, "%s", hello);
    one->state = GREETING;
    one->isComplete = 0;
    say(one, 1, text, (size_t)count);
}

static uint64_t number(const char *text, const char *end, const char *name, int *isThere) {
    size_t size = strlen(name);
    const char *place = memmem(text, (size_t)(end - text), name, size);
    *isThere = place != NULL;
    uint64_t value = 0;
    if (place)
        for (place += size; place < end && *place >= '0' && *place <= '9'; place++)
            value = value * 10 + (uint64_t)(*place - '0');
    return value;
}

static void copy(char *to, size_t room, const char *text, const char *end, const char *name) {
    const char *place = memmem(text, (size_t)(end - text), name, strlen(name));
    if (!place) return;
    place += strlen(name);
    size_t count = 0;
    while (place + count < end && place[count] != '"' && count + 1 < room) count++;
    memcpy(to, place, count);
    to[count] = 0;
}

static void told(Socket *one, const char *text, const char *end) {
    int isThere;
    uint64_t sent = number(text, end, "\"t\":", &isThere);
    if (!isThere) return;
    messages++;
    if (lateCount == lateRoom) {
        lateRoom = lateRoom ? lateRoom * 2 : 1 << 20;
        late = realloc(late, lateRoom * sizeof *late);
    }
    uint64_t took = (now() - sent) / 1000;
    late[lateCount++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
    // Posts go out over several connections, so that they do not come in the order of numbers.
    uint64_t n = number(text, end, "\"n\":", &isThere);
    if (!isThere || n <= cleared || n - cleared >= NUMBERS) return;
    n -= cleared;
    if (!one->seen) one->seen = calloc(NUMBERS / 64, sizeof *one->seen);
    if (one->seen[n / 64] >> n % 64 & 1) doubled++;
    else one->seenCount++;
    one->seen[n / 64] |= 1ull << n % 64;
}

static void hear(Socket *one, int opcode, const char *text, const char *end_) {
    if (opcode == 9) return say(one, 10, text, (size_t)(end_ - text));
    if (opcode == 8) return end(one);
    size_t count = (size_t)(end_ - text);
    if (helloCount && count > 11 && !memcmp(text, "{\"type\":\"at\"", 12)) {
        copy(one->at, sizeof one->at, text, end_, "\"at\":\"");
        if (one->state == GREETING && one->isComplete) one->state = READY, underWay--, ready++;
        return;
    }
    if (helloCount && count > 14 && !memcmp(text, "{\"type\":\"state\"", 15)) {
        copy(one->fingerprint, sizeof one->fingerprint, text, end_, "\"fingerprint\":\"");
        if (memmem(text, count, "\"complete\"", 10)) one->isComplete = 1;
        if (memmem(text, count, "\"error\"", 7)) fprintf(stderr, "%.*s\n", (int)count, text), end(one);
        return;
    }
    if (helloCount && count > 14 && !memcmp(text, "{\"type\":\"reset\"", 15)) resets++;
    if (helloCount && count > 12 && !memcmp(text, "{\"type\":\"bye\"", 13)) {
        int isThere;
        uint64_t wait = number(text, end_, "\"retryAfter\":", &isThere);
        uint64_t second = leaving ? (now() - leaving) / 1000000000ull : 0;
        if (leaving && second < SECONDS) left[second]++, leftCount++;
        if (leaving && second + wait < SECONDS) returns[second + wait]++;
        if (!leaving && one->state == GREETING && refused < 3)
            fprintf(stderr, "%.*s\n", (int)count, text);
        return end(one);
    }
    told(one, text, end_);
}

/// The frames in some bytes; returns how many bytes they were.
static size_t frames(Socket *one, const char *bytes, size_t count) {
    size_t place = 0;
    while (count - place >= 2 && !one->isClosed) {
        const unsigned char *head = (const unsigned char *)bytes + place;
        uint64_t size = head[1] & 0x7F, before = 2;
        if (size == 126) {
            if (count - place < 4) break;
            size = (uint64_t)head[2] << 8 | head[3], before = 4;
        } else if (size == 127) {
            if (count - place < 10) break;
            size = 0, before = 10;
            for (int index = 2; index < 10; index++) size = size << 8 | head[index];
        }
        if (count - place < before + size) break;
        const char *text = bytes + place + before;
        hear(one, head[0] & 0xF, text, text + size);
        place += before + size;
    }
    return place;
}

static void take(Socket *one, char *bytes, size_t count) {
    size_t worked = 0;
    if (one->state == UPGRADING) {
        char *end_ = memmem(bytes, count, "\r\n\r\n", 4);
        if (end_) {
            if (memcmp(bytes, "HTTP/1.1 101", 12)) {
                if (refused < 3) fprintf(stderr, "%.*s\n", (int)count, bytes);
                return end(one);
            }
            worked = (size_t)(end_ - bytes) + 4;
            greet(one);
        }
    }
    if (one->state >= GREETING && one->state <= READY)
        worked += frames(one, bytes + worked, count - worked);
    if (one->isClosed) return;
    char *rest = NULL;
    if (worked < count) {
        rest = malloc(count - worked);
        memcpy(rest, bytes + worked, count - worked);
    }
    free(one->rest);
    one->rest = rest, one->restCount = count - worked;
}

static void readable(Socket *one) {
    while (!one->isClosed) {
        size_t room = PART - 1, had = one->restCount;
        if (had > room / 2) fail("a frame is larger than there is room for");
        if (had) memcpy(part, one->rest, had);
        ssize_t count = recv(one->fd, part + had, room - had, 0);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) return end(one);
        int isAll = (size_t)count < room - had;
        take(one, part, had + (size_t)count);
        if (isAll) return;
    }
}

static void writable(Socket *one, int index) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(one->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) return end(one);
    watch(one->fd, EPOLLIN, (uint64_t)index, EPOLL_CTL_MOD);
    char text[1024], named[128] = "";
    if (strcmp(protocol, "-"))
        snprintf(named, sizeof named, "Sec-WebSocket-Protocol: %s\r\n", protocol);
    int count = snprintf(
        text, sizeof text,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n",
        path, port, named);
    one->state = UPGRADING;
    put(one, text, (size_t)count);
}

static void answered(Poster *one) {
    ssize_t count = recv(one->fd, one->head + one->headCount,
                         sizeof one->head - 1 - one->headCount, 0);
    if (count <= 0 && !(count < 0 && errno == EAGAIN)) {
        close(one->fd);
        if (one->isBusy) refusedPosts++;
        *one = (Poster){0};
        return;
    }
    if (count < 0) return;
    one->headCount += (size_t)count;
    one->head[one->headCount] = 0;
    // Answers are small, and come whole with their heads.
    if (!strstr(one->head, "\r\n\r\n")) return;
    if (strstr(one->head, "HTTP/1.1 2") == one->head) acknowledged++;
    else {
        if (refusedPosts++ < 3) fprintf(stderr, "%s\n", one->head);
    }
    one->headCount = 0;
    one->isBusy = 0;
}

static void turn(int milliseconds) {
    struct epoll_event events[512];
    int count = epoll_wait(poll_, events, 512, milliseconds);
    for (int index = 0; index < count; index++) {
        uint64_t tag = events[index].data.u64;
        if (tag >= 1u << 24) {
            answered(&posters[tag - (1u << 24)]);
            continue;
        }
        Socket *one = &sockets[tag];
        if (one->isClosed || one->state == NONE) continue;
        if (one->state == CONNECTING) writable(one, (int)tag);
        else readable(one);
    }
}

static void open_(int from, int count, int window) {
    uint64_t began = now();
    int next = from, last = from + count;
    refused = 0;
    while ((next < last || underWay) && now() - began < 300000000000ull) {
        while (next < last && underWay < window) {
            Socket *one = &sockets[next];
            one->fd = dial(port, (uint64_t)next);
            if (one->fd < 0) break;
            one->state = CONNECTING, one->isClosed = one->isStalled = 0, underWay++;
            watch(one->fd, EPOLLOUT, (uint64_t)next++, EPOLL_CTL_ADD);
        }
        turn(10);
    }
    printf("{\"ready\":%d,\"refused\":%d,\"seconds\":%.3f,\"resets\":%llu}\n", ready, refused,
           (double)(now() - began) / 1e9, (unsigned long long)resets);
}

static Poster *idlePoster(int to) {
    for (int index = 0; index < POSTERS; index++) {
        Poster *one = &posters[index];
        if (one->isThere && !one->isBusy) return one;
    }
    for (int index = 0; index < POSTERS; index++) {
        Poster *one = &posters[index];
        if (one->isThere) continue;
        one->fd = dial(to, 0);
        if (one->fd < 0) return NULL;
        one->isThere = 1;
        // The first request waits until the connection stands; loopback is quick.
        fcntl(one->fd, F_SETFL, fcntl(one->fd, F_GETFL) & ~O_NONBLOCK);
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        for (int tries = 0; tries < 1000 && getpeername(one->fd, (void *)&peer, &size); tries++)
            usleep(1000);
        fcntl(one->fd, F_SETFL, fcntl(one->fd, F_GETFL) | O_NONBLOCK);
        watch(one->fd, EPOLLIN, (1u << 24) + (uint64_t)index, EPOLL_CTL_ADD);
        return one;
    }
    return NULL;
}

static size_t filled(char *to, size_t room, const char *body, uint64_t moment, int choices) {
    size_t count = 0;
    unsigned long long chosen = 0;
    for (const char *place = body; *place && count + 32 < room;) {
        unsigned long long value;
        if (!strncmp(place, "@N@", 3)) value = serial;
        else if (!strncmp(place, "@T@", 3)) value = moment;
        else if (!strncmp(place, "@U@", 3)) value = chosen = draw() % (uint64_t)choices;
        else if (!strncmp(place, "@M@", 3)) value = chosen % 400;
        else if (!strncmp(place, "@S@", 3)) value = draw() % 400;
        else if (!strncmp(place, "@R@", 3)) value = draw() % 100000;
        else {
            to[count++] = *place++;
            continue;
        }
        count += (size_t)sprintf(to + count, "%llu", value);
        place += 3;
    }
    return count;
}

static void post(int to, const char *where, double rate, double seconds, const char *file,
                 int choices) {
    char body[65536] = "", text[66560], whole[67584];
    FILE *source = fopen(file, "r");
    if (!source) fail(file);
    size_t size = fread(body, 1, sizeof body - 1, source);
    body[size] = 0;
    fclose(source);
    uint64_t began = now(), sent = 0, wanted = (uint64_t)(rate * seconds + 0.5);
    acknowledged = refusedPosts = 0;
    while (sent < wanted || (acknowledged + refusedPosts < (int)sent
                             && now() - began < (uint64_t)((seconds + 60) * 1e9))) {
        uint64_t due = began + (uint64_t)((double)sent / rate * 1e9);
        Poster *one;
        while (sent < wanted && now() >= due && (one = idlePoster(to))) {
            serial++;
            // As of when it was to go: one that had to wait for its turn is late.
            size_t count = filled(text, sizeof text, body, due, choices);
            int all = snprintf(whole, sizeof whole,
                               "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
                               "\r\nContent-Length: %zu\r\n\r\n%.*s",
                               where, count, (int)count, text);
            one->isBusy = 1;
            if (send(one->fd, whole, (size_t)all, MSG_NOSIGNAL) != all) refusedPosts++, one->isBusy = 0;
            sent++;
            due = began + (uint64_t)((double)sent / rate * 1e9);
        }
        uint64_t moment = now();
        turn(sent < wanted && due > moment ? (int)((due - moment) / 1000000) : 1);
    }
    printf("{\"posted\":%llu,\"acknowledged\":%d,\"refused\":%d,\"seconds\":%.3f}\n",
           (unsigned long long)sent, acknowledged, refusedPosts, (double)(now() - began) / 1e9);
}

static int ascending(const void *left, const void *right) {
    uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
    return one < other ? -1 : one > other;
}

static void report(void) {
    qsort(late, lateCount, sizeof *late, ascending);
    double p50 = lateCount ? late[lateCount / 2] / 1000.0 : 0;
    double p99 = lateCount ? late[lateCount * 99 / 100] / 1000.0 : 0;
    double most = lateCount ? late[lateCount - 1] / 1000.0 : 0;
    // Of what everybody is to be told; where each is told of something else it says nothing.
    uint64_t missing = 0;
    for (int index = 0; index < MOST; index++)
        if (sockets[index].state == READY && serial - cleared > sockets[index].seenCount)
            missing += serial - cleared - sockets[index].seenCount;
    printf("{\"messages\":%llu,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f,\"missing\":%llu,"
           "\"twice\":%llu,\"ready\":%d,\"lost\":%d,\"resets\":%llu}\n",
           (unsigned long long)messages, p50, p99, most, (unsigned long long)missing,
           (unsigned long long)doubled, ready, lost, (unsigned long long)resets);
}

static void rest(uint64_t until, double seconds) {
    uint64_t end_ = now() + (uint64_t)(seconds * 1e9);
    while (messages < until && now() < end_) turn(5);
}

static void stall(int from, int count, int isStalled) {
    for (int index = from; index < from + count; index++) {
        Socket *one = &sockets[index];
        if (one->isClosed || one->state == NONE || one->isStalled == isStalled) continue;
        one->isStalled = isStalled;
        watch(one->fd, isStalled ? 0 : EPOLLIN, (uint64_t)index, EPOLL_CTL_MOD);
    }
    printf("{\"ready\":%d}\n", ready);
}

static void leave(double seconds) {
    leaving = now();
    memset(left, 0, sizeof left), memset(returns, 0, sizeof returns), leftCount = 0;
    int all = ready;
    uint64_t end_ = leaving + (uint64_t)(seconds * 1e9);
    while (ready > 0 && now() < end_) turn(5);
    printf("{\"all\":%d,\"told\":%d,\"seconds\":%.3f,\"returns\":[", all, leftCount,
           (double)(now() - leaving) / 1e9);
    int most = SECONDS - 1;
    while (most > 0 && !returns[most]) most--;
    for (int index = 0; index <= most; index++) printf("%s%d", index ? "," : "", returns[index]);
    puts("]}");
    leaving = 0;
}

static void readHellos(const char *file) {
    FILE *source = fopen(file, "r");
    char line[8192];
    if (!source) fail(file);
    while (fgets(line, sizeof line, source)) {
        line[strcspn(line, "\n")] = 0;
        hellos = realloc(hellos, sizeof *hellos * (size_t)(helloCount + 1));
        hellos[helloCount++] = strdup(line);
    }
    fclose(source);
}

int main(int count, char **arguments) {
    if (count != 5) return fputs("usage: load PORT PATH PROTOCOL HELLOS\n", stderr), 2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    port = atoi(arguments[1]), path = arguments[2], protocol = arguments[3];
    if (strcmp(arguments[4], "-")) readHellos(arguments[4]);
    poll_ = epoll_create1(0);
    part = malloc(PART);
    fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    setvbuf(stdout, NULL, _IOLBF, 0);
    char line[1024];
    size_t filled_ = 0;
    for (;;) {
        char byte;
        ssize_t got = read(0, &byte, 1);
        if (got == 0) return 0;
        if (got < 0) {
            turn(2);
            continue;
        }
        if (byte != '\n') {
            if (filled_ + 1 < sizeof line) line[filled_++] = byte;
            continue;
        }
        line[filled_] = 0, filled_ = 0;
        int one, two, three;
        double rate, seconds;
        char file[512], where[256];
        if (sscanf(line, "connect %d %d %d", &one, &two, &three) == 3) open_(one, two, three);
        else if (!strcmp(line, "clear")) {
            messages = doubled = resets = 0, lateCount = 0, cleared = serial;
            for (int index = 0; index < MOST; index++) {
                free(sockets[index].seen);
                sockets[index].seen = NULL, sockets[index].seenCount = 0;
            }
            puts("{}");
        } else if (sscanf(line, "wait %d %lf", &one, &seconds) == 2) {
            rest((uint64_t)one, seconds);
            report();
        } else if (sscanf(line, "rest %lf", &seconds) == 1) {
            rest(UINT64_MAX, seconds);
            puts("{}");
        } else if (sscanf(line, "post %d %255s %lf %lf %511s %d", &one, where, &rate, &seconds, file,
                          &two) == 6)
            post(one, where, rate, seconds, file, two);
        else if (!strcmp(line, "report")) report();
        else if (sscanf(line, "stall %d %d", &one, &two) == 2) stall(one, two, 1);
        else if (sscanf(line, "read %d %d", &one, &two) == 2) stall(one, two, 0);
        else if (!strcmp(line, "abandon")) {
            for (int index = 0; index < MOST; index++) end(&sockets[index]);
            for (int index = 0; index < POSTERS; index++) {
                if (posters[index].isThere) close(posters[index].fd);
                posters[index] = (Poster){0};
            }
            ready = underWay = lost = refused = 0;
            puts("{}");
        } else if (sscanf(line, "leave %lf", &seconds) == 1) leave(seconds);
        else printf("{\"error\":\"unknown\"}\n");
    }
}
