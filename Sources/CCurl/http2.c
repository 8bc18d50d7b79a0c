#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Some calls that libcurl makes to its HTTP/2 library, nghttp2, go through this file: a symbol of
 * the program comes before the same symbol of a library. What is not mended here is passed on
 * unchanged; a libcurl that calls none, or cannot be stood in for, is used as it is.
 *
 * Nothing of nghttp2's headers is needed: these functions, and the beginning of a frame, have been
 * the same in all of its releases, and the other types are opaque. */

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
#define RST_STREAM 3
/* NGHTTP2_ERR_INVALID_STATE: what is asked for cannot be done. */
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
/* Frees a thread's list of refusals with the thread. */
static pthread_key_t list_key;

static void look_up(void) {
    pthread_key_create(&list_key, free);
    /* A pointer to an object and one to a function are alike wherever dlsym exists (POSIX). */
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

/* Whether `stream` is one that both sides have ended. A request that still waits to be sent has no
 * stream either; then something is queued. */
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

/* MARK: Streams that were refused are known */

/* As many as a connection has streams; what does not fit is not known to be refused. */
#define REFUSALS 1024
struct refusal {
    void *easy;
    int how;
};
static __thread struct refusal *refusals;
static __thread int refusal_count;

static void note_refusal(void *easy, int how) {
    if (!refusals) {
        refusals = calloc(REFUSALS, sizeof(struct refusal));
        if (!refusals) return;
        pthread_setspecific(list_key, refusals);
    }
    if (refusal_count < REFUSALS) refusals[refusal_count++] = (struct refusal){easy, how};
}

/* libcurl's own callback, of the first libcurl in the process. */
static stream_close_callback heard;

/* What libcurl is told instead of `code`. A stream that was refused, or needs HTTP/1.1, it would send
 * again on another connection, which it may not open; and until all other streams have ended it
 * would keep that, and whatever it is given, waiting. */
static uint32_t told(uint32_t code) {
    return code == REFUSED_STREAM || code == HTTP_1_1_REQUIRED ? CANCEL : code;
}

static int hear_stream_close(nghttp2_session *session, int32_t stream, uint32_t code,
                             void *context) {
    if (code == REFUSED_STREAM) {
        /* libcurl ties a stream to its easy handle by this; anything else is nobody's. */
        void *easy = real.stream_user_data(session, stream);
        int how = real.requests_allowed(session) ? CCURL_STREAM_REFUSED : CCURL_BEYOND_GOAWAY;
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

/* MARK: A goodbye is heard when it is said */

static __thread int said_goodbye;

/* libcurl's own callback, of the first libcurl in the process. */
static frame_recv_callback heard_frames;

/* The beginning of RST_STREAM as nghttp2 shows it. */
struct reset_frame {
    size_t length;
    int32_t stream;
    uint8_t type, flags, reserved;
    uint32_t code;
};

/* libcurl lets what it is given wait for the streams that are open, once a GOAWAY was received: for
 * as long as one of them is not answered.
 *
 * It forgets an answer that a reset without an error follows, as one to a request that was not read
 * to its end (RFC 9113 section 8.1), and would send the request again. */
static int hear_frame(nghttp2_session *session, const void *frame, void *context) {
    const struct reset_frame *reset = frame;
    if (!real.requests_allowed(session)) said_goodbye = 1;
    if (reset->type == RST_STREAM && reset->code == NO_ERROR) return 0;
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

/* What breaks the protocol ends the connection from this side, and no frame says so. */
ssize_t nghttp2_session_mem_recv(nghttp2_session *session, const uint8_t *bytes, size_t count) {
    pthread_once(&looked_up, look_up);
    if (!real.mem_recv) return CANNOT;
    ssize_t taken = real.mem_recv(session, bytes, count);
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
        if (refusals[index].easy != easy) continue;
        int how = refusals[index].how;
        refusals[index] = refusals[--refusal_count];
        return how;
    }
    return CCURL_NOT_REFUSED;
}

/* MARK: Of an answer only what is looked at is shown */

/* What is longer than its buffer (CURLOPT_BUFFERSIZE) libcurl reads wrongly: of long header fields
 * it takes the end first, and finds no status then; and behind a long body it leaves what it has
 * read of other answers lying, until more arrives. */

/* libcurl's own callback, of the first libcurl in the process. */
static header_callback heard_fields;

/* The fields that are looked at, or that libcurl needs for itself. */
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

/* libcurl's own callback, of the first libcurl in the process. */
static chunk_callback heard_chunks;

static int hear_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                      const uint8_t *bytes, size_t count, void *context) {
    int32_t received = real.received(session, stream);
    size_t before = received > 0 && (size_t)received > count ? (size_t)received - count : 0;
    size_t room = before < CCURL_ANSWER_LIMIT ? CCURL_ANSWER_LIMIT - before : 0;
    size_t shown = count < room ? count : room;
    /* Newer releases of libcurl give room again themselves, for what they have seen. (Of others
     * nghttp2 does not take it.) */
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
