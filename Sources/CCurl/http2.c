#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Intercepts some calls of libcurl to its HTTP/2 library, nghttp2: a symbol of the program takes
 * precedence over the same symbol of a library. Calls that need no correction are forwarded
 * unchanged. A libcurl that makes no such calls, or whose calls cannot be intercepted, works as
 * usual.
 *
 * nghttp2's headers are not needed: these functions and the beginning of a frame are the same in
 * all releases, and the other types are opaque. */

typedef struct nghttp2_session nghttp2_session;
typedef struct nghttp2_session_callbacks nghttp2_session_callbacks;
typedef int (*stream_close_callback)(nghttp2_session *session, int32_t stream, uint32_t code,
                                     void *context);
typedef int (*frame_recv_callback)(nghttp2_session *session, const void *frame, void *context);
typedef int (*header_callback)(nghttp2_session *session, const void *frame, const uint8_t *name,
                               size_t name_length, const uint8_t *value, size_t value_length,
                               uint8_t flags, void *context);
typedef int (*chunk_callback)(nghttp2_session *session, uint8_t flags, int32_t stream,
                              const uint8_t *bytes, size_t count, void *context);

/* RFC 9113 section 7. */
#define NO_ERROR 0
#define REFUSED_STREAM 7
#define CANCEL 8
#define HTTP_1_1_REQUIRED 13
/* RFC 9113 section 6. */
#define HEADERS 1
#define RST_STREAM 3
/* NGHTTP2_ERR_INVALID_STATE: the requested operation is not possible. */
#define CANNOT (-519)

static struct {
    int (*submit_rst_stream)(nghttp2_session *, uint8_t, int32_t, uint32_t);
    void (*set_stream_close)(nghttp2_session_callbacks *, stream_close_callback);
    void (*set_frame_recv)(nghttp2_session_callbacks *, frame_recv_callback);
    void (*set_header)(nghttp2_session_callbacks *, header_callback);
    void (*set_chunk)(nghttp2_session_callbacks *, chunk_callback);
    int (*remote_close)(nghttp2_session *, int32_t);
    size_t (*outbound_queue_size)(nghttp2_session *);
    void *(*stream_user_data)(nghttp2_session *, int32_t);
    int (*requests_allowed)(nghttp2_session *);
    ssize_t (*mem_recv)(nghttp2_session *, const uint8_t *, size_t);
    int32_t (*received)(nghttp2_session *, int32_t);
    int (*consume)(nghttp2_session *, int32_t, size_t);
} real;

static pthread_once_t looked_up = PTHREAD_ONCE_INIT;
/* Frees a thread's lists when the thread ends. */
static pthread_key_t list_key;

static void look_up(void) {
    pthread_key_create(&list_key, free);
    /* POSIX requires of dlsym that object and function pointers have the same form. */
    *(void **)&real.submit_rst_stream = dlsym(RTLD_NEXT, "nghttp2_submit_rst_stream");
    *(void **)&real.set_stream_close =
        dlsym(RTLD_NEXT, "nghttp2_session_callbacks_set_on_stream_close_callback");
    *(void **)&real.set_frame_recv =
        dlsym(RTLD_NEXT, "nghttp2_session_callbacks_set_on_frame_recv_callback");
    *(void **)&real.remote_close = dlsym(RTLD_NEXT, "nghttp2_session_get_stream_remote_close");
    *(void **)&real.outbound_queue_size =
        dlsym(RTLD_NEXT, "nghttp2_session_get_outbound_queue_size");
    *(void **)&real.stream_user_data = dlsym(RTLD_NEXT, "nghttp2_session_get_stream_user_data");
    *(void **)&real.requests_allowed =
        dlsym(RTLD_NEXT, "nghttp2_session_check_request_allowed");
    *(void **)&real.mem_recv = dlsym(RTLD_NEXT, "nghttp2_session_mem_recv");
    *(void **)&real.set_header =
        dlsym(RTLD_NEXT, "nghttp2_session_callbacks_set_on_header_callback");
    *(void **)&real.set_chunk =
        dlsym(RTLD_NEXT, "nghttp2_session_callbacks_set_on_data_chunk_recv_callback");
    *(void **)&real.received =
        dlsym(RTLD_NEXT, "nghttp2_session_get_stream_effective_recv_data_length");
    *(void **)&real.consume = dlsym(RTLD_NEXT, "nghttp2_session_consume");
}

/* MARK: Streams that have ended are not reset */

/* Returns whether both sides have ended `stream`. A request that still waits to be sent has no
 * stream either, but then the outbound queue is not empty. */
static int has_ended(nghttp2_session *session, int32_t stream) {
    return real.remote_close && real.outbound_queue_size &&
           real.remote_close(session, stream) == -1 && real.outbound_queue_size(session) == 0;
}

__attribute__((visibility("default"))) int nghttp2_submit_rst_stream(nghttp2_session *session,
                                                                     uint8_t flags,
                                                                     int32_t stream,
                                                                     uint32_t code);

int nghttp2_submit_rst_stream(nghttp2_session *session, uint8_t flags, int32_t stream,
                              uint32_t code) {
    pthread_once(&looked_up, look_up);
    if (!real.submit_rst_stream) return CANNOT;
    if (has_ended(session, stream)) return 0;
    return real.submit_rst_stream(session, flags, stream, code);
}

/* MARK: Refused streams are recorded */

/* The number of streams of a connection. Further refusals are not recorded. */
#define REFUSALS 1024
struct refusal {
    void *easy;
    int how;
};
/* The number of streams that can be accepted in one reading: libcurl reads 32 KiB, and a HEADERS
 * frame takes ten bytes. Further ones are not recorded. */
#define ACCEPTED 4096

static __thread struct lists {
    struct refusal refusals[REFUSALS];
    int32_t accepted[ACCEPTED];
} *lists;
static __thread int refusal_count;
static __thread int accepted_count;

static int has_lists(void) {
    if (lists) return 1;
    lists = calloc(1, sizeof *lists);
    if (lists) pthread_setspecific(list_key, lists);
    return lists != NULL;
}

static void note_refusal(void *easy, int how) {
    if (refusal_count < REFUSALS && has_lists()) {
        lists->refusals[refusal_count++] = (struct refusal){easy, how};
    }
}

/* MARK: An answer that a reset follows at once is not forgotten */

/* The beginning of a frame in nghttp2's form. */
struct frame_head {
    size_t length;
    int32_t stream;
    uint8_t type, flags, reserved;
};

/* If a stream is reset with an error before libcurl has looked at its answer, because both arrived
 * in one reading, libcurl forgets the answer. So the streams that were answered 200 in the present
 * reading are noted, once their header fields were complete and valid. */
static __thread int is_reading;
/* The stream whose status 200 belongs to the header fields that are arriving. */
static __thread int32_t accepting;

static void hear_status(int32_t stream, const uint8_t *value, size_t length) {
    accepting = length == 3 && memcmp(value, "200", 3) == 0 ? stream : 0;
}

static void hear_answer(const struct frame_head *head) {
    if (head->type != HEADERS) return;
    if (is_reading && head->stream == accepting && accepted_count < ACCEPTED && has_lists()) {
        lists->accepted[accepted_count++] = accepting;
    }
    accepting = 0;
}

static int was_accepted(int32_t stream) {
    for (int index = accepted_count - 1; index >= 0; index--) {
        if (lists->accepted[index] == stream) return 1;
    }
    return 0;
}

/* The callback of libcurl; of the first one, if the process has several. */
static stream_close_callback heard;

/* Returns the error code that libcurl gets instead of `code`. libcurl would repeat a refused
 * stream, or one that needs HTTP/1.1, on another connection, which it is not allowed to open.
 * Until all other streams have ended, it would hold back that request and all new ones. */
static uint32_t told(uint32_t code) {
    return code == REFUSED_STREAM || code == HTTP_1_1_REQUIRED ? CANCEL : code;
}

static int hear_stream_close(nghttp2_session *session, int32_t stream, uint32_t code,
                             void *context) {
    int how = CCURL_NOT_REFUSED;
    if (code == REFUSED_STREAM) {
        how = real.requests_allowed(session) ? CCURL_STREAM_REFUSED : CCURL_BEYOND_GOAWAY;
    } else if (code != NO_ERROR && was_accepted(stream)) {
        how = CCURL_STREAM_ACCEPTED;
    }
    if (how != CCURL_NOT_REFUSED) {
        /* libcurl stores the stream's easy handle here; NULL means that the stream has none. */
        void *easy = real.stream_user_data(session, stream);
        if (easy) note_refusal(easy, how);
    }
    return heard(session, stream, told(code), context);
}

__attribute__((visibility("default"))) void nghttp2_session_callbacks_set_on_stream_close_callback(
    nghttp2_session_callbacks *callbacks, stream_close_callback callback);

void nghttp2_session_callbacks_set_on_stream_close_callback(
    nghttp2_session_callbacks *callbacks, stream_close_callback callback) {
    pthread_once(&looked_up, look_up);
    if (!real.set_stream_close) return;
    stream_close_callback none = NULL;
    int is_heard =
        callback && real.stream_user_data && real.requests_allowed &&
        (__atomic_compare_exchange_n(&heard, &none, callback, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) ||
         none == callback);
    real.set_stream_close(callbacks, is_heard ? hear_stream_close : callback);
}

/* MARK: A GOAWAY is noticed at once */

static __thread int said_goodbye;

/* The callback of libcurl; of the first one, if the process has several. */
static frame_recv_callback heard_frames;

/* The beginning of an RST_STREAM frame in nghttp2's form. */
struct reset_frame {
    struct frame_head head;
    uint32_t code;
};

/* Notices the end of a connection, and hides resets without an error from libcurl.
 *
 * After a GOAWAY, libcurl would hold back new requests until all open streams have been answered.
 *
 * A reset without an error follows an answer to a request that was not read to its end (RFC 9113
 * section 8.1). libcurl would discard that answer and send the request again. */
static int hear_frame(nghttp2_session *session, const void *frame, void *context) {
    const struct reset_frame *reset = frame;
    if (!real.requests_allowed(session)) said_goodbye = 1;
    if (reset->head.type == RST_STREAM && reset->code == NO_ERROR) return 0;
    hear_answer(&reset->head);
    return heard_frames(session, frame, context);
}

__attribute__((visibility("default"))) void nghttp2_session_callbacks_set_on_frame_recv_callback(
    nghttp2_session_callbacks *callbacks, frame_recv_callback callback);

void nghttp2_session_callbacks_set_on_frame_recv_callback(nghttp2_session_callbacks *callbacks,
                                                          frame_recv_callback callback) {
    pthread_once(&looked_up, look_up);
    if (!real.set_frame_recv) return;
    frame_recv_callback none = NULL;
    int is_heard = callback && real.requests_allowed &&
                   (__atomic_compare_exchange_n(&heard_frames, &none, callback, 0,
                                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
                    none == callback);
    real.set_frame_recv(callbacks, is_heard ? hear_frame : callback);
}

__attribute__((visibility("default"))) ssize_t nghttp2_session_mem_recv(nghttp2_session *session,
                                                                        const uint8_t *bytes,
                                                                        size_t count);

/* After a protocol error, nghttp2 itself ends the connection, without receiving a frame. What was
 * accepted counts for one reading: another connection has the same numbers of streams. */
ssize_t nghttp2_session_mem_recv(nghttp2_session *session, const uint8_t *bytes, size_t count) {
    pthread_once(&looked_up, look_up);
    if (!real.mem_recv) return CANNOT;
    is_reading = 1;
    accepted_count = accepting = 0;
    ssize_t taken = real.mem_recv(session, bytes, count);
    is_reading = accepted_count = accepting = 0;
    if (real.requests_allowed && !real.requests_allowed(session)) said_goodbye = 1;
    return taken;
}

int ccurl_take_goodbye(void) {
    int was_said = said_goodbye;
    said_goodbye = 0;
    return was_said;
}

int ccurl_hears_http2(void) {
    return __atomic_load_n(&heard, __ATOMIC_ACQUIRE) != NULL;
}

int ccurl_take_refusal(CURL *easy) {
    for (int index = 0; index < refusal_count; index++) {
        if (lists->refusals[index].easy != easy) continue;
        int how = lists->refusals[index].how;
        lists->refusals[index] = lists->refusals[--refusal_count];
        return how;
    }
    return CCURL_NOT_REFUSED;
}

/* MARK: libcurl gets only the necessary parts of an answer */

/* libcurl mishandles answers that are longer than its buffer (CURLOPT_BUFFERSIZE). It processes the
 * end of long header fields first and then finds no status. After a long body, it leaves other
 * answers that it has already read unprocessed until more data arrives. */

/* The callback of libcurl; of the first one, if the process has several. */
static header_callback heard_fields;

/* Returns whether the relay reads a header field, or libcurl needs it. */
static int is_wanted(const uint8_t *name, size_t length) {
    static const char *const names[] = {":status", "retry-after", "content-length"};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        if (strlen(names[index]) == length && memcmp(names[index], name, length) == 0) return 1;
    }
    return 0;
}

static int hear_field(nghttp2_session *session, const void *frame, const uint8_t *name,
                      size_t name_length, const uint8_t *value, size_t value_length,
                      uint8_t flags, void *context) {
    if (value_length > 64 || !is_wanted(name, name_length)) return 0;
    if (*name == ':') hear_status(((const struct frame_head *)frame)->stream, value, value_length);
    return heard_fields(session, frame, name, name_length, value, value_length, flags, context);
}

__attribute__((visibility("default"))) void nghttp2_session_callbacks_set_on_header_callback(
    nghttp2_session_callbacks *callbacks, header_callback callback);

void nghttp2_session_callbacks_set_on_header_callback(nghttp2_session_callbacks *callbacks,
                                                      header_callback callback) {
    pthread_once(&looked_up, look_up);
    if (!real.set_header) return;
    header_callback none = NULL;
    int is_heard = callback && (__atomic_compare_exchange_n(&heard_fields, &none, callback, 0,
                                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
                                none == callback);
    real.set_header(callbacks, is_heard ? hear_field : callback);
}

/* The callback of libcurl; of the first one, if the process has several. */
static chunk_callback heard_chunks;

static int hear_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                      const uint8_t *bytes, size_t count, void *context) {
    int32_t received = real.received(session, stream);
    size_t before = received > 0 && (size_t)received > count ? (size_t)received - count : 0;
    size_t room = before < CCURL_ANSWER_LIMIT ? CCURL_ANSWER_LIMIT - before : 0;
    size_t shown = count < room ? count : room;
    /* Newer releases of libcurl reopen the receive window themselves, but only for the bytes that
     * they get, so this does it for the others. (With older releases, nghttp2 ignores this.) */
    if (shown < count && real.consume) real.consume(session, stream, count - shown);
    return shown > 0 ? heard_chunks(session, flags, stream, bytes, shown, context) : 0;
}

__attribute__((visibility("default"))) void
nghttp2_session_callbacks_set_on_data_chunk_recv_callback(nghttp2_session_callbacks *callbacks,
                                                          chunk_callback callback);

void nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
    nghttp2_session_callbacks *callbacks, chunk_callback callback) {
    pthread_once(&looked_up, look_up);
    if (!real.set_chunk) return;
    chunk_callback none = NULL;
    int is_heard = callback && real.received &&
                   (__atomic_compare_exchange_n(&heard_chunks, &none, callback, 0,
                                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
                    none == callback);
    real.set_chunk(callbacks, is_heard ? hear_chunk : callback);
}
