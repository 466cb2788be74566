/* File locks fail below the folder $WITHOUT_LOCKS with the error $WITHOUT_LOCKS_ERRNO, as on Lustre mounted without `flock`:
   to be preloaded into a process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int fails(int fd)
{
    char link[64], path[4096];
    const char *folder = getenv("WITHOUT_LOCKS");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || !folder)
        return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)))
        return 0;
    errno = atoi(getenv("WITHOUT_LOCKS_ERRNO"));
    return 1;
}

int flock(int fd, int operation)
{
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    return fails(fd) ? -1 : real(fd, operation);
}

static int control(const char *name, int fd, int command, void *argument)
{
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK;
    return locks && fails(fd) ? -1 : real(fd, command, argument);
}

#define WRAP(name)                                 \
    int name(int fd, int command, ...)             \
    {                                              \
        va_list list;                              \
        va_start(list, command);                   \
        void *argument = va_arg(list, void *);     \
        va_end(list);                              \
        return control(#name, fd, command, argument); \
    }
WRAP(fcntl)
WRAP(fcntl64)
