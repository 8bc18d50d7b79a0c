#pragma once
#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

/* libcurl's setters are variadic macros; Swift needs a plain function for each kind of value. */

const curl_version_info_data *ccurl_version(void);

CURLcode ccurl_easy_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_easy_set_pointer(CURL *easy, CURLoption option, const void *value);
CURLcode ccurl_easy_set_text(CURL *easy, CURLoption option, const char *value);
/* libcurl keeps a copy of the bytes. */
CURLcode ccurl_easy_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count);

typedef size_t (*ccurl_write_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_sockopt_function)(void *context, curl_socket_t socket, curlsocktype purpose);
typedef curl_socket_t (*ccurl_open_function)(void *context, curlsocktype purpose,
                                             struct curl_sockaddr *address);
typedef int (*ccurl_close_function)(void *context, curl_socket_t socket);
typedef int (*ccurl_prereq_function)(void *context, char *remote, char *local, int remote_port,
                                     int local_port);
CURLcode ccurl_easy_set_write(CURL *easy, ccurl_write_function function, void *context);
CURLcode ccurl_easy_set_sockopt(CURL *easy, ccurl_sockopt_function function, void *context);
CURLcode ccurl_easy_set_open(CURL *easy, ccurl_open_function function, void *context);
CURLcode ccurl_easy_set_close(CURL *easy, ccurl_close_function function, void *context);
CURLcode ccurl_easy_set_prereq(CURL *easy, ccurl_prereq_function function, void *context);

CURLcode ccurl_easy_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode ccurl_easy_get_offset(CURL *easy, CURLINFO info, int64_t *value);
CURLcode ccurl_easy_get_pointer(CURL *easy, CURLINFO info, void **value);

typedef int (*ccurl_socket_function)(CURL *easy, curl_socket_t socket, int what, void *context,
                                     void *socket_context);
typedef int (*ccurl_timer_function)(CURLM *multi, long milliseconds, void *context);
CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value);
CURLMcode ccurl_multi_set_socket(CURLM *multi, ccurl_socket_function function, void *context);
CURLMcode ccurl_multi_set_timer(CURLM *multi, ccurl_timer_function function, void *context);
CURLcode ccurl_message_result(const CURLMsg *message);

CURLSHcode ccurl_share_tls_sessions(CURLSH *share);

/* What TLS agreed on for the connection of `easy`, readable while a request is on it:
 * 1 HTTP/2, 0 anything else, -1 not to be found out (another TLS library than OpenSSL). */
int ccurl_negotiated_http2(CURL *easy);

/* How the gateway refused a stream, which is proof that it did not process the request (RFC 9113
 * section 8.7). libcurl's HTTP/2 library knows it, and libcurl does not pass it on. */
enum {
    CCURL_NOT_REFUSED = 0,
    /* RST_STREAM with REFUSED_STREAM. */
    CCURL_STREAM_REFUSED = 1,
    /* The stream is above the last one of a GOAWAY. */
    CCURL_BEYOND_GOAWAY = 2,
};
/* How many bytes of an answer's body reach libcurl. The transfer must end before that: what is kept
 * of a body is less. */
#define CCURL_ANSWER_LIMIT 2048
/* Takes note out of the refusal of what `easy` carried on this thread, if there was one. */
int ccurl_take_refusal(CURL *easy);
/* Whether a connection whose libcurl was called on this thread since the last time takes no more
 * requests, because the gateway said so (GOAWAY) or because it is ending. */
int ccurl_take_goodbye(void);
/* Whether refusals are heard of; known once a connection was made. */
int ccurl_hears_http2(void);

/* Client certificates, read with the OpenSSL that libcurl uses. */
enum {
    CCURL_CERTIFICATE_GOOD = 0,
    /* Not a file of its kind, damaged, or enciphered in a way that this OpenSSL does not know. */
    CCURL_CERTIFICATE_UNREADABLE = 1,
    CCURL_CERTIFICATE_WRONG_PASSPHRASE = 2,
    /* No certificate with its own private key in it. */
    CCURL_CERTIFICATE_INCOMPLETE = 3,
    /* libcurl uses another TLS library. */
    CCURL_CERTIFICATE_UNCHECKED = 4,
    /* To work out its keys from the passphrase takes too long. */
    CCURL_CERTIFICATE_TOO_DEAR = 5,
};
/* Turns a PKCS#12 file into PEM: certificate, chain, private key in the clear. The text must be
 * given to `ccurl_certificate_forget`. */
int ccurl_certificate_unpack(const void *bytes, size_t count, const char *passphrase, char **pem,
                             size_t *length);
/* Whether a PEM text holds a certificate and its private key, which `passphrase` opens. */
int ccurl_certificate_check(const void *pem, size_t count, const char *passphrase);
void ccurl_certificate_forget(char *pem, size_t length);

/* Sockets and waiting; the constants differ between kernels' headers, so they stay in C. */

int ccurl_socket_open(const struct curl_sockaddr *address);
void ccurl_socket_close(int descriptor);
void ccurl_socket_cork(int descriptor, int on);
/* Finds a dead peer: unacknowledged data or probes for `user_timeout` ms end the connection. */
void ccurl_socket_guard(int descriptor, unsigned user_timeout, int probes);

/* The first three are libcurl's own (CURL_CSELECT_IN, _OUT, _ERR). */
#define CCURL_READ 1
#define CCURL_WRITE 2
#define CCURL_ERROR 4
#define CCURL_HANGUP 8
struct ccurl_event {
    uint64_t key;
    int flags;
};
int ccurl_poll_create(void);
/* Watches `descriptor` for `flags`; adds it if it is new. Returns 0, or -1 with errno. */
int ccurl_poll_watch(int poll, int descriptor, int flags, uint64_t key);
void ccurl_poll_forget(int poll, int descriptor);
/* Returns the number of events, 0 after `milliseconds` or a signal. */
int ccurl_poll_wait(int poll, struct ccurl_event *events, int capacity, int milliseconds);

int ccurl_wake_create(void);
void ccurl_wake_signal(int event);
void ccurl_wake_clear(int event);

uint64_t ccurl_monotonic_nanoseconds(void);
void ccurl_pause(uint64_t nanoseconds);
