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

/* This file is the host's root's in each namespace, so it shows what he looks
 * like in ours. */
#define ROOTS_FILE "/proc/sys/kernel/overflowuid"

static bool looks_like_root(uid_t uid)
{
	struct stat st;

	return stat(ROOTS_FILE, &st) == 0 && st.st_uid == uid;
}

static bool is_trusted(uid_t uid, enum socket_place place)
{
	return uid == 0 || uid == geteuid() ||
	       (place == SOCKET_CHOSEN && looks_like_root(uid));
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
static int check_listener(int fd, enum socket_place place)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return is_trusted(peer.uid, place) ? 0 : -EPERM;
}

static int connect_to(int fd, const struct sockaddr_un *addr,
		      enum socket_place place)
{
	int r;

	do {
		r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return check_listener(fd, place);
}

int socket_open(const char *path, enum socket_place place, int *ret_fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, r;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	if (stat(path, &st) < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (!is_trusted(st.st_uid, place))
		return -EPERM;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	set_timeout(fd, SOCKET_TIMEOUT_S);
	r = connect_to(fd, &addr, place);
	if (r) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

#define SYSTEMS 2u /* of the places: the system's, and the last */

/* Return: the @i-th place to look at, NULL and errno when out of memory. */
static char *path_of(unsigned int i)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char *path = NULL;
	int n = 0;

	if (i == 0 && runtime && *runtime)
		n = asprintf(&path, "%s/dmaheap.sock", runtime);
	else if (i == 1)
		n = asprintf(&path, "/tmp/dmaheap-%u/dmaheap.sock", geteuid());
	else if (i == SYSTEMS)
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
	r = socket_open(path, SOCKET_CHOSEN, ret_fd);
	if (r) {
		free(path);
		return r;
	}
	*ret_path = path;
	return 0;
}

int socket_search(char **ret_path, enum socket_place *ret_place, int *ret_fd)
{
	const char *named = secure_getenv("DMAHEAP_SOCKET");
	int first = -ENOENT;

	*ret_place = SOCKET_CHOSEN;
	if (named && *named)
		return search_named(named, ret_path, ret_fd);
	for (unsigned int i = 0; i <= SYSTEMS; i++) {
		enum socket_place place =
			i == SYSTEMS ? SOCKET_CHOSEN : SOCKET_PRIVATE;
		char *path = path_of(i);
		int r;

		if (!path)
			return -ENOMEM;
		r = *path ? socket_open(path, place, ret_fd) : -ENOENT;
		if (r == 0) {
			*ret_path = path;
			*ret_place = place;
			return 0;
		}
		free(path);
		if (first == -ENOENT)
			first = r;
	}
	return first;
}
