#include "CCurl.h"

const curl_version_info_data *ccurl_version(void) {
    return curl_version_info(CURLVERSION_NOW);
}

CURLcode ccurl_easy_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_easy_set_pointer(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_easy_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_easy_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {.data = (void *)bytes, .len = count, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}

CURLcode ccurl_easy_set_write(CURL *easy, ccurl_write_function function, void *context) {
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, function);
    return curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
}

CURLcode ccurl_easy_set_sockopt(CURL *easy, ccurl_sockopt_function function, void *context) {
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, function);
    return curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, context);
}

CURLcode ccurl_easy_set_open(CURL *easy, ccurl_open_function function, void *context) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, function);
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
}

CURLcode ccurl_easy_set_close(CURL *easy, ccurl_close_function function, void *context) {
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, function);
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, context);
}

CURLcode ccurl_easy_set_prereq(CURL *easy, ccurl_prereq_function function, void *context) {
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
    return curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
}

CURLcode ccurl_easy_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLcode ccurl_easy_get_offset(CURL *easy, CURLINFO info, int64_t *value) {
    curl_off_t offset = 0;
    CURLcode code = curl_easy_getinfo(easy, info, &offset);
    *value = offset;
    return code;
}

CURLcode ccurl_easy_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

CURLMcode ccurl_multi_set_socket(CURLM *multi, ccurl_socket_function function, void *context) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, function);
    return curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
}

CURLMcode ccurl_multi_set_timer(CURLM *multi, ccurl_timer_function function, void *context) {
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, function);
    return curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

CURLcode ccurl_message_result(const CURLMsg *message) {
    return message->data.result;
}

CURLSHcode ccurl_share_tls_sessions(CURLSH *share) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}
