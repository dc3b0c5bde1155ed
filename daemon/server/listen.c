/* SPDX-License-Identifier: MIT */
#include "server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#define LISTEN_BACKLOG       1024
#define LISTEN_FDS_FIRST     3 /* sd_listen_fds(3) */
#define LISTEN_SYSTEM_DIR    "/run/dmaheap"
#define LISTEN_SOCKET_NAME   "dmaheap.sock"
#define LISTEN_SYSTEM_SOCKET LISTEN_SYSTEM_DIR "/" LISTEN_SOCKET_NAME
#define LISTEN_LOCK_SUFFIX   ".lock"

_printf_(4, 5) static int fail(int r, char *error, size_t error_bytes,
			       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, error_bytes, fmt, ap);
	va_end(ap);
	return err_raise(r);
}

/* The private directory under /tmp, where anybody may have been first. */
static int make_private_dir(const char *dir, char *error, size_t error_bytes)
{
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return fail(-errno, error, error_bytes,
			    "%s: cannot make it: %s", dir, strerror(errno));
	if (lstat(dir, &st) < 0)
		return fail(-errno, error, error_bytes, "%s: %s", dir,
			    strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077))
		return fail(-EPERM, error, error_bytes,
			    "%s: must be a directory of uid %u with mode 0700, "
			    "it is mode %#o of uid %u; use --socket",
			    dir, (unsigned int)geteuid(),
			    (unsigned int)st.st_mode, (unsigned int)st.st_uid);
	return 0;
}

static int choose_path(const char *asked, char *buf, size_t buf_bytes,
		       char *error, size_t error_bytes)
{
	const char *env = getenv("DMAHEAP_SOCKET");
	const char *run = getenv("XDG_RUNTIME_DIR");
	char dir[64];
	struct stat st;
	int n, r;

	if (!asked && env && *env)
		asked = env;
	if (asked) {
		n = snprintf(buf, buf_bytes, "%s", asked);
	} else if (geteuid() == 0) {
		if (mkdir(LISTEN_SYSTEM_DIR, 0755) < 0 && errno != EEXIST)
			return fail(-errno, error, error_bytes,
				    LISTEN_SYSTEM_DIR ": cannot make it: %s; "
						      "use --socket",
				    strerror(errno));
		n = snprintf(buf, buf_bytes, LISTEN_SYSTEM_SOCKET);
	} else if (run && *run && stat(run, &st) == 0 && S_ISDIR(st.st_mode)) {
		n = snprintf(buf, buf_bytes, "%s/" LISTEN_SOCKET_NAME, run);
	} else {
		snprintf(dir, sizeof(dir), "/tmp/dmaheap-%u",
			 (unsigned int)geteuid());
		r = make_private_dir(dir, error, error_bytes);
		if (r)
			return err_trace(r);
		n = snprintf(buf, buf_bytes, "%s/" LISTEN_SOCKET_NAME, dir);
	}
	if (n < 0 || (size_t)n >= buf_bytes)
		return fail(-ENAMETOOLONG, error, error_bytes,
			    "the socket's path may have at most %zu characters",
			    buf_bytes - 1);
	return 0;
}

static void make_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", path);
}

/* Return: 0 when somebody answers, else the negated errno of connect(). */
static int try_connect(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct sockaddr_un addr;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	make_address(path, &addr);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return 0;
	/* EAGAIN: its backlog is full, so somebody listens. */
	return errno == EAGAIN ? 0 : -errno;
}

/*
 * The ring of a daemon that was killed lets go of its listening socket only a
 * while after the process is gone, so one answer is not enough.
 */
static bool somebody_answers(const char *path, int *ret_errno)
{
	const struct timespec pause_for = {.tv_nsec = 20 * NSEC_PER_MSEC};

	for (unsigned int i = 0; i < 50; i++) {
		int r = try_connect(path);

		if (r) {
			*ret_errno = -r;
			return false;
		}
		nanosleep(&pause_for, NULL);
	}
	return true;
}

/* Return: 0 when the path is free to bind, after removing a dead socket. */
static int remove_stale(const char *path, char *error, size_t error_bytes)
{
	struct stat st;
	int err = 0;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : fail(-errno, error, error_bytes,
					      "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fail(-ENOTSOCK, error, error_bytes,
			    "%s: exists and is not a socket", path);
	if (somebody_answers(path, &err))
		return fail(-EADDRINUSE, error, error_bytes,
			    "%s: another daemon answers there; stop it or use "
			    "--socket",
			    path);
	if (err != ECONNREFUSED)
		return fail(-err, error, error_bytes,
			    "%s: cannot tell whether a daemon answers: %s",
			    path, strerror(err));
	if (unlink(path) < 0 && errno != ENOENT)
		return fail(-errno, error, error_bytes,
			    "%s: cannot remove the dead socket: %s", path,
			    strerror(errno));
	return 0;
}

/*
 * Without it two daemons that start at once could each take the other's new
 * socket for dead. The holder removes the file before it lets go, so whoever
 * gets the lock makes sure that the file is still the one at that path.
 */
static int take_lock(struct listen_socket *s, char *error, size_t error_bytes)
{
	char path[sizeof(s->path) + sizeof(LISTEN_LOCK_SUFFIX)];
	struct stat at_path, held;

	snprintf(path, sizeof(path), "%s" LISTEN_LOCK_SUFFIX, s->path);
	for (;;) {
		s->lock_fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			     0600);
		if (s->lock_fd < 0)
			return fail(-errno, error, error_bytes, "%s: %s", path,
				    strerror(errno));
		if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
			s->lock_fd = fd_close(s->lock_fd); /* not ours */
			return fail(errno == EWOULDBLOCK ? -EADDRINUSE : -errno,
				    error, error_bytes,
				    "%s: another daemon holds %s; stop it or "
				    "use --socket",
				    s->path, path);
		}
		if (fstat(s->lock_fd, &held) < 0)
			return fail(-errno, error, error_bytes, "%s: %s", path,
				    strerror(errno));
		if (stat(path, &at_path) == 0 &&
		    at_path.st_dev == held.st_dev &&
		    at_path.st_ino == held.st_ino)
			return 0;
		s->lock_fd = fd_close(s->lock_fd);
	}
}

static int bind_and_listen(struct listen_socket *s, mode_t mode, gid_t gid,
			   char *error, size_t error_bytes)
{
	struct sockaddr_un addr;
	struct stat st;
	mode_t old_mask;
	int r;

	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0);
	if (s->fd < 0)
		return fail(-errno, error, error_bytes, "socket: %s",
			    strerror(errno));
	make_address(s->path, &addr);
	/* Nobody may connect before mode and group are what was asked for. */
	old_mask = umask(0777);
	r = bind(s->fd, (struct sockaddr *)&addr, sizeof(addr));
	umask(old_mask);
	if (r < 0 || lstat(s->path, &st) < 0)
		return fail(-errno, error, error_bytes, "%s: cannot bind: %s",
			    s->path, strerror(errno));
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	if (gid != (gid_t)-1 && lchown(s->path, (uid_t)-1, gid) < 0)
		return fail(-errno, error, error_bytes,
			    "%s: cannot give it group %u: %s", s->path,
			    (unsigned int)gid, strerror(errno));
	if (chmod(s->path, mode) < 0 || listen(s->fd, LISTEN_BACKLOG) < 0)
		return fail(-errno, error, error_bytes, "%s: %s", s->path,
			    strerror(errno));
	return 0;
}

/* Return: an inherited listening socket, or -1 when there is none. */
static int take_inherited(struct listen_socket *s)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	struct sockaddr_un addr = {0};
	socklen_t addr_bytes = sizeof(addr);
	int type = 0, listening = 0;
	socklen_t int_bytes = sizeof(int);
	int flags;

	if (!pid || !fds || strtol(pid, NULL, 10) != (long)getpid() ||
	    strtol(fds, NULL, 10) < 1)
		return -1;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	if (getsockopt(LISTEN_FDS_FIRST, SOL_SOCKET, SO_TYPE, &type,
		       &int_bytes) < 0 ||
	    type != SOCK_SEQPACKET ||
	    getsockopt(LISTEN_FDS_FIRST, SOL_SOCKET, SO_ACCEPTCONN, &listening,
		       &int_bytes) < 0 ||
	    !listening ||
	    getsockname(LISTEN_FDS_FIRST, (struct sockaddr *)&addr,
			&addr_bytes) < 0 ||
	    addr.sun_family != AF_UNIX)
		return -1;
	flags = fcntl(LISTEN_FDS_FIRST, F_GETFL);
	if (flags < 0 ||
	    fcntl(LISTEN_FDS_FIRST, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(LISTEN_FDS_FIRST, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	snprintf(s->path, sizeof(s->path), "%s", addr.sun_path);
	s->inherited = true;
	s->fd = LISTEN_FDS_FIRST;
	return s->fd;
}

int listen_open(const char *path, mode_t mode, gid_t gid,
		struct listen_socket *ret, char *error, size_t error_bytes)
{
	struct listen_socket s = LISTEN_SOCKET_NONE;
	int r;

	if (take_inherited(&s) >= 0) {
		*ret = s;
		return 0;
	}
	r = choose_path(path, s.path, sizeof(s.path), error, error_bytes);
	if (!r)
		r = take_lock(&s, error, error_bytes);
	if (!r)
		r = remove_stale(s.path, error, error_bytes);
	if (!r)
		r = bind_and_listen(&s, mode, gid, error, error_bytes);
	if (r) {
		listen_fini(&s);
		return err_trace(r);
	}
	*ret = s;
	return 0;
}

void listen_close(struct listen_socket *socket)
{
	struct stat st;

	/* Not when another daemon has put its own there in the meantime. */
	if (socket->fd >= 0 && !socket->inherited && socket->ino &&
	    lstat(socket->path, &st) == 0 && st.st_dev == socket->dev &&
	    st.st_ino == socket->ino)
		(void)unlink(socket->path);
	socket->fd = fd_close(socket->fd);
}

void listen_fini(struct listen_socket *socket)
{
	char lock_path[sizeof(socket->path) + sizeof(LISTEN_LOCK_SUFFIX)];

	listen_close(socket);
	if (socket->lock_fd >= 0) {
		snprintf(lock_path, sizeof(lock_path), "%s" LISTEN_LOCK_SUFFIX,
			 socket->path);
		(void)unlink(lock_path);
	}
	socket->lock_fd = fd_close(socket->lock_fd);
}
