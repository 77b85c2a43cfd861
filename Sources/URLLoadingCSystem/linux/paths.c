// SPDX-License-Identifier: Apache-2.0

#ifdef __linux__ // elsewhere URLLoadingPlatform has the error

#define _GNU_SOURCE
#include "URLLoadingCSystem.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

int csys_paths_open(_Bool receives_changes, uint32_t *port) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (receives_changes) {
        address.nl_groups =
            RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    }
    socklen_t length = sizeof address;
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0
        || getsockname(descriptor, (struct sockaddr *)&address, &length) < 0) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    *port = address.nl_pid;
    return descriptor;
}

int csys_paths_ask(int descriptor, int kind, uint32_t sequence) {
    // Complete, zeroed headers: kernels with strict checks refuse the short form.
    struct {
        struct nlmsghdr head;
        union {
            struct ifinfomsg link;
            struct ifaddrmsg address;
            struct rtmsg route;
        } body;
    } question = {.head = {.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = sequence}};
    switch (kind) {
    case CSYS_PATHS_LINKS:
        question.head.nlmsg_type = RTM_GETLINK;
        question.head.nlmsg_len = NLMSG_LENGTH(sizeof question.body.link);
        break;
    case CSYS_PATHS_ADDRESSES:
        question.head.nlmsg_type = RTM_GETADDR;
        question.head.nlmsg_len = NLMSG_LENGTH(sizeof question.body.address);
        break;
    default:
        question.head.nlmsg_type = RTM_GETROUTE;
        question.head.nlmsg_len = NLMSG_LENGTH(sizeof question.body.route);
    }
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent;
    do {
        sent = sendto(
            descriptor, &question, question.head.nlmsg_len, MSG_NOSIGNAL, (struct sockaddr *)&kernel, sizeof kernel);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

ssize_t csys_paths_receive(int descriptor, void *bytes, size_t count) {
    struct sockaddr_nl sender = {0};
    struct iovec piece = {bytes, count};
    struct msghdr message = {.msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &piece, .msg_iovlen = 1};
    ssize_t moved;
    do moved = recvmsg(descriptor, &message, 0); while (moved < 0 && errno == EINTR);
    if (moved < 0) return -errno;
    // Other processes may write to the same port: accept messages from the kernel only.
    if (message.msg_namelen < sizeof sender || sender.nl_pid != 0) return 0;
    return message.msg_flags & MSG_TRUNC ? -EMSGSIZE : moved;
}

#endif
