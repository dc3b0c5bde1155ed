/* SPDX-License-Identifier: MIT */
#include "support/blocker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINGER_S 3600

/* ---- TCP ---- */

static int listen_on_loopback(struct sockaddr_in *ret)
{
	int small = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(*ret);

	*ret = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 ||
	    bind(fd, (struct sockaddr *)ret, sizeof(*ret)) < 0 ||
	    listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)ret, &n) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* More than the peer's window takes: it stays unsent. */
static void fill(int fd)
{
	static char bytes[65536];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

bool blocker_tcp(struct blocker *ret)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	struct sockaddr_in address;
	int listener = listen_on_loopback(&address);

	*ret = (struct blocker){.fd = -1, .peer = -1};
	if (listener < 0)
		return false;
	ret->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(ret->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		ret->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	if (ret->peer < 0) {
		close(ret->fd);
		return false;
	}
	fill(ret->fd);
	setsockopt(ret->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return true;
}

/* ---- FUSE ---- */

struct request {
	struct fuse_in_header header;
	char body[FUSE_MIN_READ_BUFFER];
};

static void answer(const struct blocker *b, uint64_t unique, int err,
		   const void *body, size_t n_bytes)
{
	struct {
		struct fuse_out_header header;
		char body[256];
	} out = {.header = {.unique = unique, .error = -err}};

	out.header.len = (uint32_t)(sizeof(out.header) + n_bytes);
	if (n_bytes)
		memcpy(out.body, body, n_bytes);
	/* Gone: whoever asked was killed, or the file system is unmounted. */
	(void)!write(b->peer, &out, out.header.len);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void serve(struct blocker *b, const struct request *q, uint64_t *flush)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = 4096};
	struct fuse_entry_out entry = {.nodeid = 2, .attr = attributes(2)};
	struct fuse_attr_out attr = {.attr = attributes(q->header.nodeid)};
	struct fuse_open_out open_out = {0};
	uint64_t unique = q->header.unique;

	switch (q->header.opcode) {
	case FUSE_INIT:
		answer(b, unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(b, unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(b, unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(b, unique, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_FLUSH:
		if ((pid_t)q->header.pid == b->own || b->released) {
			answer(b, unique, 0, NULL, 0);
			break;
		}
		*flush = unique;
		b->n_flushes++;
		break;
	case FUSE_RELEASE:
		answer(b, unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(b, unique, ENOSYS, NULL, 0);
	}
}

/* Until the file system is unmounted; keeps one FLUSH at a time. */
static void *serve_fuse(void *arg)
{
	struct blocker *b = arg;
	struct request q;
	uint64_t flush = 0;

	for (;;) {
		struct pollfd p = {.fd = b->peer, .events = POLLIN};

		if (flush && b->released) {
			answer(b, flush, 0, NULL, 0);
			flush = 0;
		}
		if (poll(&p, 1, 1) <= 0)
			continue;
		if (read(b->peer, &q, sizeof(q)) > 0)
			serve(b, &q, &flush);
		else if (errno == ENODEV)
			return NULL;
	}
}

static bool mount_fuse(struct blocker *b)
{
	char options[128];

	snprintf(b->dir, sizeof(b->dir), "/tmp/dmaheap-fuse-XXXXXX");
	if (!mkdtemp(b->dir))
		return false;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other",
		 b->peer, geteuid(), getegid());
	if (mount("dmaheap-test", b->dir, "fuse", MS_NOSUID | MS_NODEV,
		  options) == 0)
		return true;
	rmdir(b->dir);
	return false;
}

bool blocker_fuse(struct blocker *ret)
{
	char path[96];

	*ret = (struct blocker){.fd = -1, .own = getpid()};
	ret->peer = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (ret->peer < 0)
		return false;
	if (!mount_fuse(ret)) {
		close(ret->peer);
		return false;
	}
	if (pthread_create(&ret->server, NULL, serve_fuse, ret) != 0)
		abort();
	snprintf(path, sizeof(path), "%s/file", ret->dir);
	ret->fd = open(path, O_RDWR | O_CLOEXEC);
	if (ret->fd < 0)
		abort();
	return true;
}

void blocker_close_fd(struct blocker *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}

void blocker_release(struct blocker *b)
{
	b->released = true;
	if (!b->dir[0] && b->peer >= 0) {
		close(b->peer);
		b->peer = -1;
	}
}

void blocker_free(struct blocker *b)
{
	blocker_release(b);
	blocker_close_fd(b);
	if (b->dir[0]) {
		umount2(b->dir, MNT_DETACH);
		pthread_join(b->server, NULL);
		rmdir(b->dir);
		close(b->peer);
	}
}
