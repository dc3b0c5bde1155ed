/* SPDX-License-Identifier: MIT */
#include "server/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

int notify_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	_cleanup_(fd_closep) int fd = -1;
	size_t n;

	if (!path || !*path)
		return 0;
	n = strlen(path);
	if (n >= sizeof(addr.sun_path) || (path[0] != '/' && path[0] != '@'))
		return err_raise(-EINVAL);
	memcpy(addr.sun_path, path, n);
	if (path[0] == '@')
		addr.sun_path[0] = '\0'; /* the abstract namespace */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_raise(-errno);
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		   (struct sockaddr *)&addr,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return err_raise(-errno);
	return 0;
}

int notify_ready_fd(int fd, const char *text)
{
	_cleanup_(fd_closep) int owned = fd;
	char line[256];
	int n;

	if (fd < 0)
		return 0;
	n = snprintf(line, sizeof(line), "%s\n", text);
	if (n < 0 || (size_t)n >= sizeof(line))
		return err_raise(-EMSGSIZE);
	if (write(owned, line, (size_t)n) != n)
		return err_raise(errno ? -errno : -EIO);
	return 0;
}
