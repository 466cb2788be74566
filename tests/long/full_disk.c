/* A disk that is full from the n-th write to a regular file on: NSL_FULL_AT=n, for LD_PRELOAD. How many there were goes to
   the file NSL_WRITES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long writes;

static int is_full(int fd) {
    struct stat status;
    const char *at = getenv("NSL_FULL_AT");
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    if (atomic_fetch_add(&writes, 1) + 1 < (at ? atol(at) : 1L << 60)) return 0;
    errno = ENOSPC;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) { return is_full(fd) ? -1 : REAL(write)(fd, data, size); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return is_full(fd) ? -1 : REAL(writev)(fd, parts, count); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return is_full(fd) ? -1 : REAL(pwrite)(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return is_full(fd) ? -1 : REAL(pwrite64)(fd, data, size, at); }

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("NSL_WRITES");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) fprintf(file, "%ld\n", (long)writes), fclose(file);
}
