/* Notes what a process does to the files below HOLDFAST_SHIM_ROOT, in order, in HOLDFAST_SHIM_LOG.
 *
 * Loaded by LD_PRELOAD. Every call is done as asked and then noted, both under one lock, so that
 * the notes are in the order of the effects. `power_loss.py` makes of them the folder that a power
 * failure at some moment might have left. What is written to standard output is noted, too: it says
 * what had been acknowledged by then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES_MAX 65536
#define RWF_DSYNC_FLAG 2

enum { OPEN = 1, WRITE, WRITE_DURABLY, SYNC, TRUNCATE, RENAME, UNLINK, LINK, MKDIR, RMDIR, SAID };

struct __attribute__((packed)) note {
    uint8_t op;
    int32_t file;
    uint64_t number;
    uint32_t first_bytes;
    uint32_t second_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char watched[FILES_MAX];
static const char *root;
static size_t root_bytes;
static int log_file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("HOLDFAST_SHIM_LOG");
    root = getenv("HOLDFAST_SHIM_ROOT");
    if (root == NULL || path == NULL) return;
    root_bytes = strlen(root);
    int opened = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_file = syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 1000);
    syscall(SYS_close, opened);
}

static void tell(int op, int file, uint64_t number, const void *first, size_t first_bytes,
                 const void *second, size_t second_bytes) {
    struct note note = {op, file, number, first_bytes, second_bytes};
    struct iovec parts[3] = {{&note, sizeof note}, {(void *)first, first_bytes},
                             {(void *)second, second_bytes}};
    int before = errno;
    syscall(SYS_writev, log_file, parts, 3);
    errno = before;
}

/* The absolute path, if it is below the root; the folder's links are not followed. */
static int below(int folder, const char *path, char *whole) {
    if (log_file < 0 || path == NULL) return 0;
    if (path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
    } else {
        char link[64], base[PATH_MAX];
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
        if (size < 0) return 0;
        base[size] = 0;
        if (snprintf(whole, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    return strncmp(whole, root, root_bytes) == 0 && (whole[root_bytes] == '/' || !whole[root_bytes]);
}

static int is_watched(int file) { return file >= 0 && file < FILES_MAX && watched[file]; }

static int do_open(int folder, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    if (!below(folder, path, whole)) return syscall(SYS_openat, folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    int file = syscall(SYS_openat, folder, path, flags, mode);
    if (file >= 0 && file < FILES_MAX) {
        watched[file] = 1;
        tell(OPEN, file, flags, whole, strlen(whole), NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define MODE(flags)                                         \
    mode_t mode = 0;                                        \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                \
        va_list more;                                       \
        va_start(more, flags);                              \
        mode = va_arg(more, mode_t);                        \
        va_end(more);                                       \
    }
int open(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return do_open(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return do_open(at, path, flags, mode); }

int close(int file) {
    if (is_watched(file)) watched[file] = 0;
    return syscall(SYS_close, file);
}

static ssize_t do_write(int file, const struct iovec *parts, int count, off_t at, int flags) {
    if (!is_watched(file) && !(file == 1 && log_file >= 0)) {
        if (at < 0) return syscall(SYS_writev, file, parts, count);
        return syscall(SYS_pwritev2, file, parts, count, at, 0, flags);
    }
    pthread_mutex_lock(&lock);
    off_t start = at;
    if (at < 0 && file != 1) {
        struct stat found;
        int how = syscall(SYS_fcntl, file, F_GETFL);
        start = how & O_APPEND ? (syscall(SYS_fstat, file, &found), found.st_size)
                               : syscall(SYS_lseek, file, 0, SEEK_CUR);
    }
    ssize_t written = at < 0 ? syscall(SYS_writev, file, parts, count)
                             : syscall(SYS_pwritev2, file, parts, count, at, 0, flags);
    ssize_t left = written;
    for (int i = 0; i < count && left > 0; i++) {
        size_t bytes = left < (ssize_t)parts[i].iov_len ? (size_t)left : parts[i].iov_len;
        int op = file == 1 ? SAID : flags & RWF_DSYNC_FLAG ? WRITE_DURABLY : WRITE;
        tell(op, file, start, parts[i].iov_base, bytes, NULL, 0);
        start += bytes;
        left -= bytes;
    }
    pthread_mutex_unlock(&lock);
    return written;
}

static ssize_t write_one(int file, const void *data, size_t bytes, off_t at) {
    struct iovec part = {(void *)data, bytes};
    return do_write(file, &part, 1, at, 0);
}
ssize_t write(int file, const void *data, size_t bytes) { return write_one(file, data, bytes, -1); }
ssize_t pwrite(int file, const void *data, size_t bytes, off_t at) { return write_one(file, data, bytes, at); }
ssize_t pwrite64(int file, const void *data, size_t bytes, off_t at) { return write_one(file, data, bytes, at); }
ssize_t writev(int file, const struct iovec *parts, int count) { return do_write(file, parts, count, -1, 0); }
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return do_write(file, parts, count, at, 0); }
ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) { return do_write(file, parts, count, at, 0); }
ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags) { return do_write(file, parts, count, at, flags); }
ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off_t at, int flags) { return do_write(file, parts, count, at, flags); }

/* A call on an open file: done, and noted if it succeeded. */
static int on_file(int op, int file, uint64_t number, long (*call)(int, uint64_t)) {
    if (!is_watched(file)) return call(file, number);
    pthread_mutex_lock(&lock);
    int result = call(file, number);
    if (result == 0) tell(op, file, number, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
static long call_fsync(int file, uint64_t _) { return syscall(SYS_fsync, file); }
static long call_fdatasync(int file, uint64_t _) { return syscall(SYS_fdatasync, file); }
static long call_ftruncate(int file, uint64_t size) { return syscall(SYS_ftruncate, file, size); }
int fsync(int file) { return on_file(SYNC, file, 0, call_fsync); }
int fdatasync(int file) { return on_file(SYNC, file, 0, call_fdatasync); }
int ftruncate(int file, off_t size) { return on_file(TRUNCATE, file, size, call_ftruncate); }
int ftruncate64(int file, off_t size) { return on_file(TRUNCATE, file, size, call_ftruncate); }

/* A call on names: done, and noted if it succeeded and is below the root. */
static int on_names(int op, int at, const char *path, int to, const char *target, long result) {
    char whole[PATH_MAX], second[PATH_MAX] = "";
    if (result == 0 && below(at, path, whole)) {
        if (target != NULL && !below(to, target, second)) second[0] = 0;
        tell(op, -1, 0, whole, strlen(whole), second, strlen(second));
    }
    pthread_mutex_unlock(&lock);
    return result;
}
#define NAMES(op, at, path, to, target, call) \
    pthread_mutex_lock(&lock);                \
    return on_names(op, at, path, to, target, call)
int rename(const char *a, const char *b) { NAMES(RENAME, AT_FDCWD, a, AT_FDCWD, b, syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0)); }
int renameat(int at, const char *a, int to, const char *b) { NAMES(RENAME, at, a, to, b, syscall(SYS_renameat2, at, a, to, b, 0)); }
int renameat2(int at, const char *a, int to, const char *b, unsigned flags) { NAMES(RENAME, at, a, to, b, syscall(SYS_renameat2, at, a, to, b, flags)); }
int link(const char *a, const char *b) { NAMES(LINK, AT_FDCWD, a, AT_FDCWD, b, syscall(SYS_linkat, AT_FDCWD, a, AT_FDCWD, b, 0)); }
int linkat(int at, const char *a, int to, const char *b, int flags) { NAMES(LINK, at, a, to, b, syscall(SYS_linkat, at, a, to, b, flags)); }
int unlink(const char *a) { NAMES(UNLINK, AT_FDCWD, a, 0, NULL, syscall(SYS_unlinkat, AT_FDCWD, a, 0)); }
int unlinkat(int at, const char *a, int flags) { NAMES(flags & AT_REMOVEDIR ? RMDIR : UNLINK, at, a, 0, NULL, syscall(SYS_unlinkat, at, a, flags)); }
int rmdir(const char *a) { NAMES(RMDIR, AT_FDCWD, a, 0, NULL, syscall(SYS_unlinkat, AT_FDCWD, a, AT_REMOVEDIR)); }
int mkdir(const char *a, mode_t mode) { NAMES(MKDIR, AT_FDCWD, a, 0, NULL, syscall(SYS_mkdirat, AT_FDCWD, a, mode)); }
int mkdirat(int at, const char *a, mode_t mode) { NAMES(MKDIR, at, a, 0, NULL, syscall(SYS_mkdirat, at, a, mode)); }
