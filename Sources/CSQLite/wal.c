#include "CSQLite.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// https://www.sqlite.org/fileformat2.html#walformat
enum { HEADER = 32, FRAME_HEADER = 24 };

static uint32_t big_endian(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t little_endian(const unsigned char *bytes) {
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static void add(uint32_t sum[2], int is_big, const unsigned char *bytes, size_t length) {
    for (size_t i = 0; i + 8 <= length; i += 8) {
        uint32_t first = is_big ? big_endian(bytes + i) : little_endian(bytes + i);
        uint32_t second = is_big ? big_endian(bytes + i + 4) : little_endian(bytes + i + 4);
        sum[0] += first + sum[1];
        sum[1] += second + sum[0];
    }
}

static int equals(const uint32_t sum[2], const unsigned char *stored) {
    return sum[0] == big_endian(stored) && sum[1] == big_endian(stored + 4);
}

// Returns the number of the broken frame; 0 if there is none that matters.
static long long scan(FILE *file, const unsigned char *header, unsigned char *frame, size_t page) {
    int is_big = header[3] & 1;
    uint32_t sum[2] = {0, 0};
    add(sum, is_big, header, 24);
    int is_intact = equals(sum, header + 24);
    long long broken = 1;
    int follows_commit = 0;
    unsigned char last[8];
    memcpy(last, header + 24, 8);
    for (long long number = 1; fread(frame, FRAME_HEADER + page, 1, file) == 1; number++) {
        // A frame with other salts is left over from before the log was restarted.
        if (memcmp(frame + 8, header + 16, 8) != 0) {
            if (is_intact) broken = number;
            is_intact = follows_commit = 0;
            continue;
        }
        // A frame's checksum continues that of the frame before, as stored there.
        sum[0] = big_endian(last);
        sum[1] = big_endian(last + 4);
        add(sum, is_big, frame, 8);
        add(sum, is_big, frame + FRAME_HEADER, page);
        int is_chained = equals(sum, frame + 16);
        if (is_intact && !is_chained) {
            broken = number;
            is_intact = 0;
        } else if (!is_intact && is_chained && follows_commit) {
            return broken;
        }
        follows_commit = big_endian(frame + 4) != 0;
        memcpy(last, frame + 16, 8);
    }
    return 0;
}

int belfry_wal_follow(
    const unsigned char *frames, int count, int page, int is_big, const unsigned char *salt,
    uint32_t *sum) {
    size_t size = FRAME_HEADER + (size_t)page;
    for (int i = 0; i < count; i++) {
        const unsigned char *frame = frames + i * size;
        if (memcmp(frame + 8, salt, 8) != 0) return i;
        uint32_t next[2] = {sum[0], sum[1]};
        add(next, is_big, frame, 8);
        add(next, is_big, frame + FRAME_HEADER, page);
        if (!equals(next, frame + 16)) return i;
        sum[0] = next[0];
        sum[1] = next[1];
    }
    return count;
}

long long belfry_wal_broken_frame(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    unsigned char header[HEADER];
    long long result = 0;
    if (fread(header, HEADER, 1, file) == 1 && (big_endian(header) & ~1u) == 0x377f0682) {
        uint32_t page = big_endian(header + 8);
        int is_page = page >= 512 && page <= 65536 && (page & (page - 1)) == 0;
        unsigned char *frame = is_page ? malloc(FRAME_HEADER + page) : NULL;
        if (frame) result = scan(file, header, frame, page);
        free(frame);
    }
    fclose(file);
    return result;
}
