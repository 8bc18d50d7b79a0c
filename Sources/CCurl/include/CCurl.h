#pragma once
#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

/* libcurl's setters are variadic macros; Swift needs a plain function for each kind of value. */

const curl_version_info_data *ccurl_version(void);

CURLcode ccurl_easy_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_easy_set_pointer(CURL *easy, CURLoption option, const void *value);
CURLcode ccurl_easy_set_text(CURL *easy, CURLoption option, const char *value);
/* libcurl copies the bytes. */
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

/* Returns the protocol that TLS negotiated for the connection of `easy`, during a request:
 * 1 HTTP/2, 0 another one, -1 unknown (a TLS library other than OpenSSL). */
int ccurl_negotiated_http2(CURL *easy);

/* How the gateway refused a stream, which proves that it did not process the request (RFC 9113
 * section 8.7). libcurl's HTTP/2 library knows this, but libcurl does not pass it on. */
enum {
    CCURL_NOT_REFUSED = 0,
    /* RST_STREAM with REFUSED_STREAM. */
    CCURL_STREAM_REFUSED = 1,
    /* The stream is above the last one of a GOAWAY. */
    CCURL_BEYOND_GOAWAY = 2,
    /* It is no refusal: the stream was answered 200 and reset in one reading, and libcurl forgets
     * such an answer. */
    CCURL_STREAM_ACCEPTED = 3,
};
/* The maximum number of bytes of an answer's body that reach libcurl. The caller keeps less of a
 * body and must end the transfer before this limit. */
#define CCURL_ANSWER_LIMIT 2048
/* Returns how the stream of `easy` was refused on this thread, and removes the record. */
int ccurl_take_refusal(CURL *easy);
/* Returns whether, since the last call on this thread, a connection stopped accepting requests,
 * because of a GOAWAY or because it is ending. */
int ccurl_take_goodbye(void);
/* Returns whether refusals can be recorded, which is known after the first connection. */
int ccurl_hears_http2(void);

/* Client certificates, read with the OpenSSL that libcurl uses. */
enum {
    CCURL_CERTIFICATE_GOOD = 0,
    /* Another kind of file, damaged, or encrypted in a way that this OpenSSL does not support. */
    CCURL_CERTIFICATE_UNREADABLE = 1,
    CCURL_CERTIFICATE_WRONG_PASSPHRASE = 2,
    /* There is no certificate together with its private key. */
    CCURL_CERTIFICATE_INCOMPLETE = 3,
    /* libcurl uses another TLS library. */
    CCURL_CERTIFICATE_UNCHECKED = 4,
    /* Deriving the keys from the passphrase would take too long. */
    CCURL_CERTIFICATE_TOO_DEAR = 5,
};
/* Converts a PKCS#12 file to PEM: the certificate, its chain, and the private key, unencrypted. The
 * caller must pass the text to `ccurl_certificate_forget`. */
int ccurl_certificate_unpack(const void *bytes, size_t count, const char *passphrase, char **pem,
                             size_t *length);
/* Checks that a PEM text has a certificate and its private key, which `passphrase` decrypts. */
int ccurl_certificate_check(const void *pem, size_t count, const char *passphrase);
void ccurl_certificate_forget(char *pem, size_t length);

/* Sockets and waiting; the constants differ between kernels' headers, so they stay in C. */

int ccurl_socket_open(const struct curl_sockaddr *address);
void ccurl_socket_close(int descriptor);
void ccurl_socket_cork(int descriptor, int on);
/* Detects a dead peer: data or probes unacknowledged for `user_timeout` ms end the connection. */
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
/* Watches `descriptor` for `flags`, adding it if it is new. Returns 0, or -1 with errno. */
int ccurl_poll_watch(int poll, int descriptor, int flags, uint64_t key);
void ccurl_poll_forget(int poll, int descriptor);
/* Waits for events and returns their number; 0 after `milliseconds` or a signal. */
int ccurl_poll_wait(int poll, struct ccurl_event *events, int capacity, int milliseconds);

int ccurl_wake_create(void);
void ccurl_wake_signal(int event);
void ccurl_wake_clear(int event);

uint64_t ccurl_monotonic_nanoseconds(void);
void ccurl_pause(uint64_t nanoseconds);
