/* SPDX-License-Identifier: MIT */
#include "lib/socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static void set_timeout(int fd, int seconds)
{
	struct timeval tv = {.tv_sec = seconds};

	/* These cannot fail on a socket; and without them we merely wait. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

void socket_wait_forever(int fd)
{
	set_timeout(fd, 0);
}

/* Who listens there: the file's owner alone could have been swapped since. */
static int check_listener(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return is_trusted(peer.uid) ? 0 : -EPERM;
}

static int connect_to(int fd, const struct sockaddr_un *addr)
{
	int r;

	do {
		r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return check_listener(fd);
}

int socket_open(const char *path, int *ret_fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, r;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	if (stat(path, &st) < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (!is_trusted(st.st_uid))
		return -EPERM;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	set_timeout(fd, SOCKET_TIMEOUT_S);
	r = connect_to(fd, &addr);
	if (r) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Return: the @i-th place to look at, NULL and errno when out of memory. */
static char *place(unsigned int i)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char *path = NULL;
	int n = 0;

	if (i == 0 && runtime && *runtime)
		n = asprintf(&path, "%s/dmaheap.sock", runtime);
	else if (i == 1)
		n = asprintf(&path, "/tmp/dmaheap-%u/dmaheap.sock", geteuid());
	else if (i == 2)
		n = asprintf(&path, "%s", SOCKET_SYSTEM_PATH);
	else
		n = asprintf(&path, "%s", ""); /* nothing to look at */
	return n < 0 ? NULL : path;
}

static int search_named(const char *named, char **ret_path, int *ret_fd)
{
	char *path = strdup(named);
	int r;

	if (!path)
		return -ENOMEM;
	r = socket_open(path, ret_fd);
	if (r) {
		free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}

int socket_search(char **ret_path, int *ret_fd)
{
	const char *named = getenv("DMAHEAP_SOCKET");
	int first = -ENOENT;

	if (named && *named)
		return search_named(named, ret_path, ret_fd);
	for (unsigned int i = 0; i < 3; i++) {
		char *path = place(i);
		int r;

		if (!path)
			return -ENOMEM;
		r = *path ? socket_open(path, ret_fd) : -ENOENT;
		if (r == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
		if (first == -ENOENT)
			first = r;
	}
	return first;
}
