#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* Three calls that libcurl makes to its HTTP/2 library, nghttp2, go through this file: a symbol of
 * the program comes before the same symbol of a library. What is not mended here is passed on
 * unchanged; a libcurl that calls none, or cannot be stood in for, is used as it is.
 *
 * Nothing of nghttp2's headers is needed: the types are opaque, and these functions have been the
 * same in all of its releases. */

typedef struct nghttp2_session nghttp2_session;
typedef struct nghttp2_session_callbacks nghttp2_session_callbacks;
typedef int (*stream_close_callback)(nghttp2_session *session, int32_t stream, uint32_t code,
                                     void *context);
typedef int (*frame_recv_callback)(nghttp2_session *session, const void *frame, void *context);

/* RFC 9113 section 7. */
#define REFUSED_STREAM 7
/* NGHTTP2_ERR_INVALID_STATE: what is asked for cannot be done. */
#define CANNOT (-519)

static struct {
    int (*submit_rst_stream)(nghttp2_session *, uint8_t, int32_t, uint32_t);
    void (*set_stream_close)(nghttp2_session_callbacks *, stream_close_callback);
    void (*set_frame_recv)(nghttp2_session_callbacks *, frame_recv_callback);
    int (*remote_close)(nghttp2_session *, int32_t);
    size_t (*outbound_queue_size)(nghttp2_session *);
    void *(*stream_user_data)(nghttp2_session *, int32_t);
    int (*requests_allowed)(nghttp2_session *);
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

static int hear_stream_close(nghttp2_session *session, int32_t stream, uint32_t code,
                             void *context) {
    if (code == REFUSED_STREAM) {
        /* libcurl ties a stream to its easy handle by this; anything else is nobody's. */
        void *easy = real.stream_user_data(session, stream);
        int how = real.requests_allowed(session) ? CCURL_STREAM_REFUSED : CCURL_BEYOND_GOAWAY;
        if (easy) note_refusal(easy, how);
    }
    return heard(session, stream, code, context);
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

/* libcurl lets what it is given wait for the streams that are open, once a GOAWAY was received: for
 * as long as one of them is not answered. */
static int hear_frame(nghttp2_session *session, const void *frame, void *context) {
    if (!real.requests_allowed(session)) said_goodbye = 1;
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
