// SPDX-License-Identifier: Apache-2.0

// CRC-32C (RFC 3720, appendix B.4), by the processor's instruction where it has one: 16 KiB then take 2 microseconds,
// as long as reading them from the kernel's memory, and not 16.

#include "URLLoadingCSystem.h"

#include <string.h>

#if defined(__aarch64__)
#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

static uint32_t of_bytes(uint32_t sum, const unsigned char *bytes, size_t count) {
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (; count > 0; count--) {
        sum ^= *bytes++;
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2")))
static uint32_t by_instruction(uint32_t sum, const unsigned char *bytes, size_t count) {
    uint64_t wide = sum;
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    sum = (uint32_t)wide;
    for (; count > 0; count--) sum = __builtin_ia32_crc32qi(sum, *bytes++);
    return sum;
}
static _Bool has_instruction(void) { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__aarch64__)
__attribute__((target("+crc")))
static uint32_t by_instruction(uint32_t sum, const unsigned char *bytes, size_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        sum = __crc32cd(sum, word);
    }
    for (; count > 0; count--) sum = __crc32cb(sum, *bytes++);
    return sum;
}
static _Bool has_instruction(void) {
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & 1 << 7) != 0; // HWCAP_CRC32
#else
    return 1;
#endif
}
#else
static uint32_t by_instruction(uint32_t sum, const unsigned char *bytes, size_t count) {
    return of_bytes(sum, bytes, count);
}
static _Bool has_instruction(void) { return 0; }
#endif

uint32_t csys_crc32c(uint32_t sum, const void *bytes, size_t count, _Bool plainly) {
    sum = ~sum;
    return ~(!plainly && has_instruction() ? by_instruction(sum, bytes, count) : of_bytes(sum, bytes, count));
}
