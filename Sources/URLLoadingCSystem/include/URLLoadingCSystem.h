// SPDX-License-Identifier: Apache-2.0

// The operating system's services for URLLoadingIO, in a platform-neutral form.
//
// Everything specific to Linux (epoll, eventfd, accept4, MSG_NOSIGNAL) is behind these functions in `linux/`; another
// platform would be another folder beside it. Feature macros such as _GNU_SOURCE stay in the .c files: in a header that
// Swift imports they break debug builds.
#ifndef CSYSTEM_H
#define CSYSTEM_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

// The readiness reported by one call of `csys_poll_wait`.
enum {
    CSYS_READABLE = 1,
    CSYS_WRITABLE = 2,
    /// The peer has ended its direction, or the connection is gone; reported together with CSYS_READABLE.
    CSYS_ENDED = 4,
};
typedef struct {
    void *key;
    uint32_t ready;
} csys_event;

/// Creates a poll set. Returns a descriptor, or -errno.
int csys_poll_create(void);
/// Adds `descriptor`, edge-triggered, for `interests` (CSYS_READABLE, CSYS_WRITABLE) and hang-up. Returns 0 or -errno.
int csys_poll_add(int poll, int descriptor, void *key, int interests);
/// Changes the interests of an added descriptor; errors and hang-up are always notified. What became ready while it was
/// of no interest is then notified. Returns 0 or -errno.
int csys_poll_notify(int poll, int descriptor, void *key, int interests);
/// Waits until one descriptor is readable. Returns 1, 0 after `nanoseconds`, or -errno.
int csys_wait_readable(int descriptor, int64_t nanoseconds);
/// Waits at most `nanoseconds` (< 0: for ever; 0: not at all). Returns the number of events, or -errno.
int csys_poll_wait(int poll, csys_event *events, int capacity, int64_t nanoseconds);
/// Creates a descriptor that ends a `csys_poll_wait` on `poll`, reported with a null key. Returns it, or -errno.
int csys_wake_create(int poll);
void csys_wake(int descriptor);

/// Monotonic time in nanoseconds; `coarse` is cheaper, but advances only every few milliseconds.
int64_t csys_now(void);
int64_t csys_now_coarse(void);
/// Seconds since 1970.
int64_t csys_wall_clock(void);
void csys_nap(int64_t nanoseconds);

/// Sockets are non-blocking and not inherited by child processes. All functions return -errno on failure.
int csys_socket(int family);
/// Connects. Called again while connecting, it reports the outcome: 0 or -EISCONN, -EALREADY, or the failure.
int csys_connect(int descriptor, const struct sockaddr *address, socklen_t length);
int csys_listen(int descriptor, const struct sockaddr *address, socklen_t length, int backlog);
/// Binds a port without listening: connections to it are refused, and the system chooses it for no other socket. A
/// socket that asks for this very port may still listen on it.
int csys_reserve(int descriptor, const struct sockaddr *address, socklen_t length);
int csys_accept(int descriptor, struct sockaddr_storage *peer, socklen_t *length);
int csys_set_no_delay(int descriptor);
/// Acknowledges what was received now, if the system has delayed it.
int csys_acknowledge(int descriptor);
/// Reports the socket as readable once this many bytes have arrived (SO_RCVLOWAT), or the peer has closed; default 1.
int csys_set_receive_low_water(int descriptor, int count);
/// Marks outgoing packets with a DSCP (0 to 63), and queues them locally with a priority (0 to 6).
int csys_set_traffic_class(int descriptor, int family, int code_point, int priority);
/// Binds a socket to an interface, whatever the routes say. -EPERM where only privileged processes may.
int csys_bind_interface(int descriptor, const char *name);
/// Lets TCP probe a connection after `seconds` of silence, and each `seconds` after that; `count` unanswered probes end
/// it, 0 for the system's number.
int csys_set_keep_alive(int descriptor, int seconds, int count);
/// Binds the local address; if its port is 0, the port is chosen when connecting.
int csys_bind_address(int descriptor, const struct sockaddr *address, socklen_t length);
/// Reads the first address of an interface in a family. Returns its length, 0 if it has none, or -errno.
int csys_interface_address(const char *name, int family, struct sockaddr_storage *address);
/// Finds out whether interfaces have addresses of a family other than 127.0.0.1 and ::1, as AI_ADDRCONFIG does. Returns
/// 0 or -errno.
int csys_address_families(_Bool *has_ipv4, _Bool *has_ipv6);
int csys_shutdown_write(int descriptor);
/// Makes `close` reset the connection instead of ending it cleanly, for misbehaving test servers.
int csys_set_reset_on_close(int descriptor);
int csys_local_address(int descriptor, struct sockaddr_storage *address, socklen_t *length);
/// Reads the local address that current routes would use for a peer. Nothing is sent.
int csys_address_towards(
    const struct sockaddr *peer, socklen_t size, struct sockaddr_storage *address, socklen_t *length);
int csys_close(int descriptor);

/// These functions never raise SIGPIPE. They return the number of bytes moved, or -errno.
ssize_t csys_send(int descriptor, const void *bytes, size_t count);
ssize_t csys_receive(int descriptor, void *bytes, size_t count);
/// Looks at one byte without consuming it. Returns 1, 0 at the end of input, or -errno.
ssize_t csys_peek(int descriptor);

/// Datagrams of UDP, in builds with the trait HTTP3. The functions return -errno on failure.
enum {
    /// The kernel cuts datagrams of one size from a buffer (UDP_SEGMENT).
    CSYS_CUTS_DATAGRAMS = 1,
    /// The kernel joins received datagrams of one size (UDP_GRO).
    CSYS_JOINS_DATAGRAMS = 2,
    /// The most groups of datagrams that are received by one call.
    CSYS_MOST_RECEIVED = 4,
};
/// One datagram, or several that the kernel has joined.
typedef struct {
    uint32_t count;
    /// The size of each datagram; the last one may be smaller.
    uint32_t size;
    /// The mark of congestion (RFC 3168).
    uint8_t ecn;
    /// The last datagram did not fit, and its rest is lost.
    _Bool is_truncated;
} csys_datagrams;
int csys_datagram_socket(int family);
/// Lets packets not be fragmented, reports their marks, and returns what the kernel is able to do. Never fails.
int csys_datagram_prepare(int descriptor, int family);
/// Sends datagrams of `size` bytes, of which the last may be smaller, marked with a traffic class (RFC 2474, RFC 3168).
/// Returns the number of bytes in those that were sent. `cuts`: by CSYS_CUTS_DATAGRAMS; -EIO if the network device
/// cannot do it.
ssize_t csys_send_datagrams(
    int descriptor, int family, const void *bytes, size_t count, size_t size, int traffic_class, bool cuts);
/// Receives datagrams, each group with `room` bytes of the buffer. Returns the number of groups.
int csys_receive_datagrams(int descriptor, void *bytes, size_t room, csys_datagrams *received, int capacity);

/// Files to read: opened without waiting, not inherited by child processes. The functions return -errno on failure.
typedef struct {
    int64_t size;
    _Bool is_regular;
    _Bool is_directory;
    /// Set by `csys_file_reopen`: only this user may write to the file.
    _Bool is_own;
} csys_file_info;
int csys_file_open(const char *path, csys_file_info *info);
/// Reads over this descriptor do not change the file's time of access, if it is the caller's file (O_NOATIME).
void csys_file_leave_access_time(int descriptor);
int64_t csys_file_size(int descriptor);
/// Reads cached bytes only. -EAGAIN if they are not cached, or the system cannot tell.
ssize_t csys_file_read_now(int descriptor, void *bytes, size_t count, int64_t offset);
ssize_t csys_file_read(int descriptor, void *bytes, size_t count, int64_t offset);
/// Returns whether these bytes are in the page cache, judged by the first and the last of them.
_Bool csys_file_is_near(int descriptor, int64_t offset, size_t count);
/// Sends bytes of a file into a socket without copying them through the process. Never raises SIGPIPE. Returns the
/// number of bytes moved, 0 at the end of the file, or -errno.
ssize_t csys_send_file(int descriptor, int file, int64_t offset, size_t count);

/// Files to write. New ones are accessible to their owner only; a symbolic link at the end of a path is not followed.
/// The functions return -errno on failure.
int csys_file_create(const char *path);
int csys_file_reopen(const char *path, csys_file_info *info);
ssize_t csys_file_write(int descriptor, const void *bytes, size_t count, int64_t offset);
int csys_file_truncate(int descriptor, int64_t size);
/// Allocates the file's first bytes on the disk without changing its size.
int csys_file_reserve(int descriptor, int64_t size);
/// Frees a range of the file, which then reads as zeros; the size of the file stays.
int csys_file_punch(int descriptor, int64_t offset, int64_t count);
/// Acquires a lock that excludes other processes and other opens of the file; fails if it is taken.
int csys_file_claim(int descriptor);
int csys_file_unclaim(int descriptor);
/// Acquires that lock, and gives the file the mark of what a later process may remove: the sticky bit, which has no
/// other meaning for a file (chmod(2)). Returns -errno without the lock or without modes.
int csys_file_mark(int descriptor);
/// Removes the mark; the lock stays.
int csys_file_unmark(int descriptor);
/// Removes a file of this user that has the mark and that no process has locked. On a file system whose locks other
/// machines may not see, it must also have been left alone for that many seconds. Returns whether it was removed.
_Bool csys_file_remove_leftover(const char *path, int64_t seconds);
int csys_file_sync(int descriptor);
/// Continues a CRC-32C over more bytes; 0 begins one.
/// - Parameter plainly: does not use the processor's instruction for it.
uint32_t csys_crc32c(uint32_t sum, const void *bytes, size_t count, _Bool plainly);
/// Synchronises the content only, without metadata such as its times.
int csys_file_sync_content(int descriptor);
/// Returns the permission bits of an open file, including setuid and the like, or -errno.
int csys_file_mode(int descriptor);
int csys_file_set_mode(int descriptor, unsigned mode);
/// Returns the process's umask without changing it, or -errno. umask(2) would change it for other threads meanwhile.
int csys_file_mask(void);
/// Reads the boot identifier, which is valid until the next boot: 36 characters and a zero. False if there is none.
_Bool csys_boot_identity(char identity[37]);
int csys_file_rename(const char *from, const char *to);
/// Renames a file, unless there is one with the new name: -EEXIST then.
/// - Parameter plainly: uses neither the kernel's own call for it nor links, which some file systems do not have.
int csys_file_rename_unless_exists(const char *from, const char *to, _Bool plainly);
int csys_file_remove(const char *path);
/// Creates a folder and its parents, each accessible to its owner only. Returns whether it exists afterwards.
_Bool csys_folder_make(const char *path);
int csys_directory_sync(const char *path);
/// Creates a directory that is accessible to its owner only.
int csys_directory_make(const char *path);
/// Describes the file at a path, not following a symbolic link. `is_own`: this user owns it, and no other may write to
/// it. Returns 0 or -errno.
typedef struct {
    uint64_t device;
    uint64_t number;
    _Bool is_regular;
    _Bool is_directory;
    _Bool is_own;
    /// Permission bits, without setuid and the like.
    uint32_t mode;
} csys_path_info;
int csys_path_look(const char *path, csys_path_info *info);
/// Whether a path refers to the open file itself, not following a symbolic link.
_Bool csys_file_is_same(const char *path, int descriptor);

/// Local sockets between processes (unix(7)).
typedef struct {
    int32_t process;
    uint32_t user;
} csys_peer;
/// Reads the credentials of the peer, as recorded when it connected or listened. Returns 0 or -errno.
int csys_peer_credentials(int descriptor, csys_peer *peer);
/// Like `csys_send`, and sends at most CSYS_MOST_DESCRIPTORS open files with the first of the bytes.
enum { CSYS_MOST_DESCRIPTORS = 2 };
ssize_t csys_send_descriptors(int descriptor, const void *bytes, size_t count, const int *files, int file_count);
/// Like `csys_receive`, and receives the open files sent with the bytes, not inherited by child processes. -EMSGSIZE if
/// there were more files than CSYS_MOST_DESCRIPTORS: all are closed.
ssize_t csys_receive_descriptors(int descriptor, void *bytes, size_t count, int *files, int *file_count);
/// Sends one datagram to a local socket: the protocol of service managers (sd_notify(3)). Returns 0 or -errno.
int csys_send_datagram(const struct sockaddr *address, socklen_t length, const char *text);
/// Makes a descriptor from another process non-blocking and not inherited. Returns 0 or -errno.
int csys_adopt(int descriptor);
/// Closes all descriptors from `first` on.
void csys_close_from(int first);

/// A program to start. It inherits `files` as its descriptors, from 0 on, and no others.
typedef struct {
    const char *path;
    char *const *arguments;
    char *const *environment;
    /// The working folder; null for that of this process.
    const char *folder;
    const int *files;
    int file_count;
    /// True if the program leads a session of its own (setsid(2)): it gets no signals of this one's terminal.
    _Bool leads_session;
} csys_program;
/// Starts a program with no signal blocked or ignored. Returns its process id, or -errno.
int csys_program_start(const csys_program *program);
/// Waits for the end of a child. Returns its exit code, 128 and the signal that ended it, or -errno.
int csys_program_wait(int process);

/// Nanoseconds since the start of the system, including the time of its sleep.
int64_t csys_boot_time(void);
/// Nanoseconds since 1970.
int64_t csys_wall_time(void);

/// Fills in cryptographically random bytes. Returns 0 or -errno.
int csys_random(void *bytes, size_t count);

/// The networks of this machine. The kernel's messages are parsed in Swift, where lengths are checked; on Linux they
/// are those of rtnetlink(7).
enum {
    CSYS_PATHS_LINKS = 0,
    CSYS_PATHS_ADDRESSES = 1,
    CSYS_PATHS_ROUTES = 2,
};
/// Opens a non-blocking channel, not inherited by child processes; it receives changes if `receives_changes`. `port`
/// marks the answers to it. Returns a descriptor, or -errno.
int csys_paths_open(_Bool receives_changes, uint32_t *port);
/// Requests all entries of one kind; the answers carry `sequence`. One request at a time. Returns 0 or -errno.
int csys_paths_ask(int descriptor, int kind, uint32_t sequence);
/// Receives one datagram. Returns its length, 0 if it was not from the kernel, or -errno: -EAGAIN if there is none,
/// -ENOBUFS if some were lost, -EMSGSIZE if one did not fit and was dropped.
ssize_t csys_paths_receive(int descriptor, void *bytes, size_t count);

/// Runs `work` when the process ends by `exit`, or by returning from `main`. A child made by `fork` inherits the
/// handler but does not run it: it has none of the threads, and another thread's locks are never released there.
void csys_at_exit(void (*work)(void));

/// Writes a line to the standard error, in one piece.
void csys_write_error(const char *line);
/// Appends a line, which ends with a newline, to a file that other processes append to as well.
void csys_append_line(const char *path, const char *line);

/// Returns a variable of the environment, or null.
const char *csys_environment(const char *name);
/// Opens a shared library with immediate, local binding, and looks up its symbols; null if it is not there.
void *csys_library_open(const char *name);
void *csys_library_symbol(void *library, const char *name);
void csys_free(void *memory);

/// Runs `body(context)` on a new detached thread with all signals blocked, except those of a fault. Returns 0 or an
/// errno.
int csys_thread_start(void (*body)(void *), void *context, const char *name);
/// A counting semaphore. Null is accepted by all functions, and stands for one that is never raised.
typedef struct csys_semaphore csys_semaphore;
csys_semaphore *csys_semaphore_create(void);
void csys_semaphore_destroy(csys_semaphore *semaphore);
void csys_semaphore_raise(csys_semaphore *semaphore);
/// Returns false if the semaphore was not raised within `nanoseconds`.
_Bool csys_semaphore_wait(csys_semaphore *semaphore, int64_t nanoseconds);

/// A thread-local pointer, by which the polling thread recognises itself.
void csys_set_thread_mark(const void *mark);
const void *csys_thread_mark(void);

/// Tells the thread sanitizer that memory released at `address` was acquired here. Does nothing without the sanitizer.
void csys_sanitizer_acquire(const void *address);

/// The errno of this thread.
int csys_error(void);
/// Returns the description of an errno, a static text that the caller must not free.
const char *csys_error_words(int number);

#endif
