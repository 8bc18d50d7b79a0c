#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* OpenSSL is loaded with libcurl, so its functions are looked up by name and no header of it is
 * needed. Old files (RC2, 3DES: what keychains exported for years) need its legacy provider, which
 * nobody else here should get: so everything happens in a library context of its own. */

struct openssl {
    void *(*context_new)(void);
    void (*context_free)(void *);
    void *(*provider_load)(void *, const char *);
    int (*provider_unload)(void *);
    void *(*bio_of)(const void *, int);
    void *(*bio_new)(const void *);
    const void *(*bio_memory)(void);
    long (*bio_ctrl)(void *, int, long, void *);
    int (*bio_free)(void *);
    void *(*pkcs12_new)(int, void *, const char *);
    void *(*pkcs12_read)(void *, void **);
    int (*pkcs12_parse)(void *, const char *, void **, void **, void **);
    void (*pkcs12_free)(void *);
    void *(*read_certificate)(void *, void **, void *, void *);
    void *(*read_key)(void *, void **, void *, void *, void *, const char *);
    int (*write_certificate)(void *, void *);
    int (*write_key)(void *, void *, const void *, const void *, int, void *, void *);
    int (*matches)(void *, void *);
    int (*stack_count)(const void *);
    void *(*stack_value)(const void *, int);
    void (*stack_free)(void *, void (*)(void *));
    void (*certificate_free)(void *);
    void (*key_free)(void *);
    unsigned long (*next_error)(void);
};

enum { memory_info = 3, pkcs7_data = 21, pkcs12_library = 35, wrong_mac = 113 };

static int look_up(struct openssl *ssl) {
    const char *names[] = {
        "OSSL_LIB_CTX_new", "OSSL_LIB_CTX_free", "OSSL_PROVIDER_load", "OSSL_PROVIDER_unload",
        "BIO_new_mem_buf", "BIO_new", "BIO_s_mem", "BIO_ctrl", "BIO_free", "PKCS12_init_ex",
        "d2i_PKCS12_bio", "PKCS12_parse", "PKCS12_free", "PEM_read_bio_X509",
        "PEM_read_bio_PrivateKey_ex", "PEM_write_bio_X509", "PEM_write_bio_PrivateKey",
        "X509_check_private_key", "OPENSSL_sk_num", "OPENSSL_sk_value", "OPENSSL_sk_pop_free",
        "X509_free", "EVP_PKEY_free", "ERR_get_error",
    };
    enum { count = sizeof names / sizeof *names };
    _Static_assert(sizeof *ssl == count * sizeof(void *), "a name for each function");
    void *found[count];
    for (size_t index = 0; index < count; index++) {
        found[index] = dlsym(RTLD_DEFAULT, names[index]);
        if (!found[index]) return 0;
    }
    memcpy(ssl, found, sizeof *ssl);
    return 1;
}

/* Empties the list of errors; whether one of them is a passphrase that does not fit the file. */
static int take_errors(const struct openssl *ssl) {
    int is_passphrase = 0;
    for (unsigned long error; (error = ssl->next_error()) != 0;) {
        if (((error >> 23) & 0xFF) == pkcs12_library && (error & 0x7FFFFF) == wrong_mac)
            is_passphrase = 1;
    }
    return is_passphrase;
}

static int write_all(const struct openssl *ssl, void *key, void *certificate, void *others,
                     char **pem, size_t *length) {
    void *out = ssl->bio_new(ssl->bio_memory());
    if (!out) return CCURL_CERTIFICATE_UNREADABLE;
    int is_written = ssl->write_certificate(out, certificate);
    for (int index = 0; is_written && others && index < ssl->stack_count(others); index++)
        is_written = ssl->write_certificate(out, ssl->stack_value(others, index));
    is_written = is_written && ssl->write_key(out, key, NULL, NULL, 0, NULL, NULL);
    char *bytes = NULL;
    long count = is_written ? ssl->bio_ctrl(out, memory_info, 0, &bytes) : 0;
    *pem = count > 0 ? malloc((size_t)count) : NULL;
    if (*pem) {
        memcpy(*pem, bytes, (size_t)count);
        *length = (size_t)count;
    }
    if (count > 0) explicit_bzero(bytes, (size_t)count);
    ssl->bio_free(out);
    return *pem ? CCURL_CERTIFICATE_GOOD : CCURL_CERTIFICATE_UNREADABLE;
}

static int unpack(const struct openssl *ssl, void *context, const void *bytes, size_t count,
                  const char *passphrase, char **pem, size_t *length) {
    void *file = ssl->pkcs12_new(pkcs7_data, context, NULL);
    void *in = ssl->bio_of(bytes, (int)count);
    void *key = NULL, *certificate = NULL, *others = NULL;
    int result = CCURL_CERTIFICATE_UNREADABLE;
    if (file && in && ssl->pkcs12_read(in, &file)) {
        if (!ssl->pkcs12_parse(file, passphrase, &key, &certificate, &others))
            result = take_errors(ssl) ? CCURL_CERTIFICATE_WRONG_PASSPHRASE
                                      : CCURL_CERTIFICATE_UNREADABLE;
        else if (!key || !certificate)
            result = CCURL_CERTIFICATE_INCOMPLETE;
        else
            result = write_all(ssl, key, certificate, others, pem, length);
    }
    ssl->stack_free(others, ssl->certificate_free);
    ssl->certificate_free(certificate);
    ssl->key_free(key);
    ssl->bio_free(in);
    ssl->pkcs12_free(file);
    return result;
}

int ccurl_certificate_unpack(const void *bytes, size_t count, const char *passphrase, char **pem,
                             size_t *length) {
    struct openssl ssl;
    *pem = NULL;
    *length = 0;
    if (!look_up(&ssl)) return CCURL_CERTIFICATE_UNCHECKED;
    if (count > 1 << 20) return CCURL_CERTIFICATE_UNREADABLE;
    void *context = ssl.context_new();
    if (!context) return CCURL_CERTIFICATE_UNCHECKED;
    void *usual = ssl.provider_load(context, "default");
    void *old = ssl.provider_load(context, "legacy");
    take_errors(&ssl);
    int result = unpack(&ssl, context, bytes, count, passphrase, pem, length);
    take_errors(&ssl);
    if (old) ssl.provider_unload(old);
    if (usual) ssl.provider_unload(usual);
    ssl.context_free(context);
    return result;
}

int ccurl_certificate_check(const void *pem, size_t count, const char *passphrase) {
    struct openssl ssl;
    if (!look_up(&ssl)) return CCURL_CERTIFICATE_UNCHECKED;
    if (count > 1 << 20) return CCURL_CERTIFICATE_UNREADABLE;
    take_errors(&ssl);
    void *first = ssl.bio_of(pem, (int)count), *second = ssl.bio_of(pem, (int)count);
    void *certificate = first ? ssl.read_certificate(first, NULL, NULL, NULL) : NULL;
    /* Without a passphrase OpenSSL would ask for one at the terminal. */
    void *key =
        second ? ssl.read_key(second, NULL, NULL, (void *)passphrase, NULL, NULL) : NULL;
    int result = CCURL_CERTIFICATE_GOOD;
    if (!certificate) result = CCURL_CERTIFICATE_UNREADABLE;
    else if (!key) result = CCURL_CERTIFICATE_WRONG_PASSPHRASE;
    else if (!ssl.matches(certificate, key)) result = CCURL_CERTIFICATE_INCOMPLETE;
    ssl.certificate_free(certificate);
    ssl.key_free(key);
    ssl.bio_free(first);
    ssl.bio_free(second);
    take_errors(&ssl);
    return result;
}

void ccurl_certificate_forget(char *pem, size_t length) {
    if (!pem) return;
    explicit_bzero(pem, length);
    free(pem);
}
