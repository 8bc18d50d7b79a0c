#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* OpenSSL is loaded with libcurl, so its functions are looked up by name and its headers are not
 * needed. Old files (RC2, 3DES: keychains exported these for years) need its legacy provider. A
 * separate library context keeps that provider from all other code. */

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
    int (*read_block)(void *, char **, char **, unsigned char **, long *);
    int (*pkcs12_encode)(const void *, unsigned char **);
    void *(*pkcs12_safes)(const void *);
    int (*safe_encode)(const void *, unsigned char **);
    void *(*safe_bags)(void *);
    void *(*safe_open)(void *, const char *, int);
    int (*bag_encode)(const void *, unsigned char **);
    void (*safe_free)(void *);
    void (*bag_free)(void *);
    void (*memory_free)(void *, const char *, int);
};

enum { memory_info = 3, memory_left = 10, pkcs7_data = 21, pkcs12_library = 35, wrong_mac = 113 };

static int look_up(struct openssl *ssl) {
    const char *names[] = {
        "OSSL_LIB_CTX_new", "OSSL_LIB_CTX_free", "OSSL_PROVIDER_load", "OSSL_PROVIDER_unload",
        "BIO_new_mem_buf", "BIO_new", "BIO_s_mem", "BIO_ctrl", "BIO_free", "PKCS12_init_ex",
        "d2i_PKCS12_bio", "PKCS12_parse", "PKCS12_free", "PEM_read_bio_X509",
        "PEM_read_bio_PrivateKey_ex", "PEM_write_bio_X509", "PEM_write_bio_PrivateKey",
        "X509_check_private_key", "OPENSSL_sk_num", "OPENSSL_sk_value", "OPENSSL_sk_pop_free",
        "X509_free", "EVP_PKEY_free", "ERR_get_error", "PEM_read_bio", "i2d_PKCS12",
        "PKCS12_unpack_authsafes", "i2d_PKCS7", "PKCS12_unpack_p7data", "PKCS12_unpack_p7encdata",
        "i2d_PKCS12_SAFEBAG", "PKCS7_free", "PKCS12_SAFEBAG_free", "CRYPTO_free",
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

/* Clears the error queue; returns whether one of the errors is a wrong passphrase. */
static int take_errors(const struct openssl *ssl) {
    int is_passphrase = 0;
    for (unsigned long error; (error = ssl->next_error()) != 0;) {
        if (((error >> 23) & 0xFF) == pkcs12_library && (error & 0x7FFFFF) == wrong_mac)
            is_passphrase = 1;
    }
    return is_passphrase;
}

/* The file states how many rounds derive a key from the passphrase: up to two billion for each
 * encrypted item, which take minutes. The relay opens a saved file, and each connection to the
 * gateway decrypts a PEM text again, so the rounds are limited. Firefox writes three times 600,000
 * rounds; OpenSSL and the keychain write 2,048. */
enum { most_rounds = 3000000, deepest = 32 };

/* Returns a DER integer as a number of rounds. Too large ones become one more than the limit. */
static long rounds_of(const unsigned char *bytes, size_t count) {
    long number = 0;
    for (size_t index = 0; index < count; index++) {
        number = number << 8 | bytes[index];
        if (number > most_rounds) return most_rounds + 1;
    }
    return number;
}

static long sum_of(long first, long second) {
    long sum = first + second;
    return sum > most_rounds ? most_rounds + 1 : sum;
}

/* Returns the rounds from the numbers after a salt. For PBKDF2 and older algorithms, the first is
 * the number of rounds, and a second one the key length. For scrypt, N, r and p are multiplied. */
static long rounds_behind_salt(const long *numbers, int count) {
    long product = count > 0 ? numbers[0] : 0;
    for (int index = 1; count > 2 && index < 3; index++) {
        if (numbers[index] == 0) return 0;
        product = product > most_rounds / numbers[index] ? most_rounds + 1
                                                         : product * numbers[index];
    }
    return product;
}

/* Returns the total rounds of the algorithms in a sequence of DER elements. Contents of octet
 * strings are not examined. Moves `at` past the sequence, which ends at `end` or, if its length is
 * indefinite, with an end-of-contents marker. */
static long rounds_in(const unsigned char **at, const unsigned char *end, int is_open, int depth) {
    long sum = 0, numbers[3];
    int follows_salt = 0, count = 0;
    while (end - *at >= 2) {
        unsigned char tag = (*at)[0];
        size_t length = (*at)[1];
        *at += 2;
        if (is_open && tag == 0 && length == 0) break;
        /* Multi-byte tags do not occur in these files. */
        if ((tag & 0x1F) == 0x1F) return most_rounds + 1;
        int has_no_length = length == 0x80;
        if (length > 0x80) {
            size_t bytes = length & 0x7F;
            if (bytes > 4 || (size_t)(end - *at) < bytes) return most_rounds + 1;
            length = 0;
            for (; bytes > 0; bytes--) length = length << 8 | *(*at)++;
        }
        if (has_no_length) length = (size_t)(end - *at);
        if (length > (size_t)(end - *at)) return most_rounds + 1;
        if (tag == 2 && follows_salt) {
            if (count < 3) numbers[count++] = rounds_of(*at, length);
        } else {
            sum = sum_of(sum, rounds_behind_salt(numbers, count));
            count = 0;
            follows_salt = (tag & 0xDF) == 4;
        }
        if (tag & 0x20) {
            if (depth == deepest) return most_rounds + 1;
            const unsigned char *inner = *at;
            sum = sum_of(sum, rounds_in(&inner, *at + length, has_no_length, depth + 1));
            if (has_no_length) length = (size_t)(inner - *at);
        } else if (has_no_length) {
            return most_rounds + 1;
        }
        *at += length;
    }
    return sum_of(sum, rounds_behind_salt(numbers, count));
}

static long rounds_of_element(const unsigned char *bytes, long count) {
    if (!bytes || count <= 0) return 0;
    const unsigned char *at = bytes;
    return rounds_in(&at, bytes + count, 0, 0);
}

/* Returns the rounds of an OpenSSL object, from its encoded form. */
static long rounds_of_object(const struct openssl *ssl, const void *object,
                             int (*encode)(const void *, unsigned char **)) {
    unsigned char *bytes = NULL;
    int count = encode(object, &bytes);
    long rounds = rounds_of_element(bytes, count);
    if (bytes) ssl->memory_free(bytes, __FILE__, __LINE__);
    return count < 0 ? most_rounds + 1 : rounds;
}

static long rounds_of_bags(const struct openssl *ssl, void *bags) {
    long sum = 0;
    for (int index = 0; bags && index < ssl->stack_count(bags); index++) {
        void *bag = ssl->stack_value(bags, index);
        sum = sum_of(sum, rounds_of_object(ssl, bag, ssl->bag_encode));
    }
    ssl->stack_free(bags, ssl->bag_free);
    return sum;
}

/* Returns whether a PKCS#12 file can be opened in an acceptable time. Checks the unencrypted parts
 * first, then decrypts the others and checks their contents. */
static int is_acceptable(const struct openssl *ssl, void *file, const char *passphrase) {
    void *safes = ssl->pkcs12_safes(file);
    int count = safes ? ssl->stack_count(safes) : 0;
    long sum = rounds_of_object(ssl, file, ssl->pkcs12_encode);
    for (int index = 0; index < count; index++) {
        void *safe = ssl->stack_value(safes, index);
        sum = sum_of(sum, rounds_of_object(ssl, safe, ssl->safe_encode));
    }
    for (int index = 0; index < count && sum <= most_rounds; index++) {
        void *safe = ssl->stack_value(safes, index);
        sum = sum_of(sum, rounds_of_bags(ssl, ssl->safe_bags(safe)));
        sum = sum_of(sum, rounds_of_bags(ssl, ssl->safe_open(safe, passphrase, -1)));
        /* An empty passphrase may mean none at all. */
        if (!*passphrase)
            sum = sum_of(sum, rounds_of_bags(ssl, ssl->safe_open(safe, NULL, -1)));
    }
    ssl->stack_free(safes, ssl->safe_free);
    take_errors(ssl);
    return sum <= most_rounds;
}

/* Returns whether a PEM text, with a possibly encrypted key, opens in an acceptable time. */
static int is_acceptable_text(const struct openssl *ssl, const void *pem, size_t count) {
    void *in = ssl->bio_of(pem, (int)count);
    char *name, *header;
    unsigned char *bytes;
    long length, sum = 0;
    for (long left; in && (left = ssl->bio_ctrl(in, memory_left, 0, NULL)) > 0;) {
        /* Unreadable blocks are skipped, as OpenSSL does when it looks for the key. */
        if (!ssl->read_block(in, &name, &header, &bytes, &length)) {
            if (ssl->bio_ctrl(in, memory_left, 0, NULL) >= left) break;
            continue;
        }
        /* A block encrypted by its header takes one round. A second encryption within it would be
         * invisible here, so a block whose name also says ENCRYPTED is refused. */
        if (*header)
            sum = strstr(name, "ENCRYPTED") ? most_rounds + 1 : sum;
        else if (!strstr(name, "CERTIFICATE"))
            sum = sum_of(sum, rounds_of_element(bytes, length));
        ssl->memory_free(name, __FILE__, __LINE__);
        ssl->memory_free(header, __FILE__, __LINE__);
        ssl->memory_free(bytes, __FILE__, __LINE__);
    }
    ssl->bio_free(in);
    take_errors(ssl);
    return sum <= most_rounds;
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
        if (!is_acceptable(ssl, file, passphrase))
            result = CCURL_CERTIFICATE_TOO_DEAR;
        else if (!ssl->pkcs12_parse(file, passphrase, &key, &certificate, &others))
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
    if (!is_acceptable_text(&ssl, pem, count)) return CCURL_CERTIFICATE_TOO_DEAR;
    void *first = ssl.bio_of(pem, (int)count), *second = ssl.bio_of(pem, (int)count);
    void *certificate = first ? ssl.read_certificate(first, NULL, NULL, NULL) : NULL;
    /* Without a passphrase argument, OpenSSL would ask for one at the terminal. */
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
