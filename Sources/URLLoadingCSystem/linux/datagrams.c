// SPDX-License-Identifier: Apache-2.0

// Datagrams of UDP (udp(7), ip(7), ipv6(7)): many with one call, marks of congestion, sizes of the path.

#if defined(__linux__) && HTTP3

#define _GNU_SOURCE
#include "URLLoadingCSystem.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

// The most datagrams that the kernel cuts from one buffer, and the most of one call without that.
enum { MOST_SEGMENTS = 64, MOST_MESSAGES = 16 };

int csys_datagram_socket(int family) {
    int descriptor = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    return descriptor < 0 ? -errno : descriptor;
}

static int set(int descriptor, int level, int name, int value) {
    return setsockopt(descriptor, level, name, &value, sizeof value);
}

int csys_datagram_prepare(int descriptor, int family) {
    int found = 0, size = 0;
    socklen_t length = sizeof size;
    // The sender finds the path's size itself and ignores what routers report, because such a report can be forged.
    if (family == AF_INET6) {
        if (set(descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) < 0)
            (void)set(descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
        (void)set(descriptor, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    } else {
        if (set(descriptor, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) < 0)
            (void)set(descriptor, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
        (void)set(descriptor, IPPROTO_IP, IP_RECVTOS, 1);
    }
    if (getsockopt(descriptor, IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0) found |= CSYS_CUTS_DATAGRAMS;
    if (set(descriptor, IPPROTO_UDP, UDP_GRO, 1) == 0) found |= CSYS_JOINS_DATAGRAMS;
    // The default holds some ninety datagrams: what a fast sender sends in a millisecond. The system may permit less.
    (void)set(descriptor, SOL_SOCKET, SO_RCVBUF, 2 << 20);
    return found;
}

// Control messages of one send: the traffic class, and the size of segments.
typedef union {
    char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
    struct cmsghdr aligned;
} control;

static void describe(struct msghdr *message, control *space, int family, int traffic_class, uint16_t segment) {
    memset(space, 0, sizeof *space);
    message->msg_control = space->bytes;
    message->msg_controllen = sizeof space->bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    header->cmsg_type = family == AF_INET6 ? IPV6_TCLASS : IP_TOS;
    header->cmsg_len = CMSG_LEN(sizeof traffic_class);
    memcpy(CMSG_DATA(header), &traffic_class, sizeof traffic_class);
    size_t length = CMSG_SPACE(sizeof traffic_class);
    if (segment) {
        header = CMSG_NXTHDR(message, header);
        header->cmsg_level = IPPROTO_UDP;
        header->cmsg_type = UDP_SEGMENT;
        header->cmsg_len = CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(header), &segment, sizeof segment);
        length += CMSG_SPACE(sizeof segment);
    }
    message->msg_controllen = length;
}

ssize_t csys_send_datagrams(
    int descriptor, int family, const void *bytes, size_t count, size_t size, int traffic_class, bool cuts) {
    control space;
    if (count == 0 || size == 0) return 0;
    if (cuts && count > size) {
        size_t most = 65000 / size < MOST_SEGMENTS ? 65000 / size : MOST_SEGMENTS;
        size_t now = count < most * size ? count : most * size;
        struct iovec piece = {(void *)bytes, now};
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
        describe(&message, &space, family, traffic_class, (uint16_t)size);
        ssize_t sent = sendmsg(descriptor, &message, MSG_NOSIGNAL);
        return sent < 0 ? -errno : sent;
    }
    struct mmsghdr messages[MOST_MESSAGES];
    struct iovec pieces[MOST_MESSAGES];
    memset(messages, 0, sizeof messages);
    unsigned number = 0;
    for (size_t start = 0; start < count && number < MOST_MESSAGES; start += size, number++) {
        pieces[number] = (struct iovec){(char *)bytes + start, count - start < size ? count - start : size};
        messages[number].msg_hdr.msg_iov = &pieces[number];
        messages[number].msg_hdr.msg_iovlen = 1;
        if (number == 0) {
            describe(&messages[0].msg_hdr, &space, family, traffic_class, 0);
        } else {
            messages[number].msg_hdr.msg_control = messages[0].msg_hdr.msg_control;
            messages[number].msg_hdr.msg_controllen = messages[0].msg_hdr.msg_controllen;
        }
    }
    int sent = sendmmsg(descriptor, messages, number, MSG_NOSIGNAL);
    if (sent < 0) return -errno;
    ssize_t total = 0;
    for (int i = 0; i < sent; i++) total += (ssize_t)pieces[i].iov_len;
    return total;
}

int csys_receive_datagrams(int descriptor, void *bytes, size_t room, csys_datagrams *received, int capacity) {
    struct mmsghdr messages[CSYS_MOST_RECEIVED];
    struct iovec pieces[CSYS_MOST_RECEIVED];
    control space[CSYS_MOST_RECEIVED];
    if (capacity > CSYS_MOST_RECEIVED) capacity = CSYS_MOST_RECEIVED;
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < capacity; i++) {
        pieces[i] = (struct iovec){(char *)bytes + (size_t)i * room, room};
        messages[i].msg_hdr.msg_iov = &pieces[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        messages[i].msg_hdr.msg_control = space[i].bytes;
        messages[i].msg_hdr.msg_controllen = sizeof space[i].bytes;
    }
    int number = recvmmsg(descriptor, messages, (unsigned)capacity, 0, NULL);
    if (number < 0) return -errno;
    for (int i = 0; i < number; i++) {
        struct msghdr *message = &messages[i].msg_hdr;
        received[i] = (csys_datagrams){messages[i].msg_len, messages[i].msg_len, 0, !!(message->msg_flags & MSG_TRUNC)};
        for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
            int value = 0;
            size_t length = header->cmsg_len - CMSG_LEN(0);
            memcpy(&value, CMSG_DATA(header), length < sizeof value ? length : sizeof value);
            if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
                // The kernel writes an int, whatever udp(7) says of other types.
                if (value > 0) received[i].size = (uint32_t)value;
            } else if (
                (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS)
                || (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS)) {
                received[i].ecn = (uint8_t)(value & 3);
            }
        }
    }
    return number;
}

#endif
