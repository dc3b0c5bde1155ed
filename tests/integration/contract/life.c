/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <sys/socket.h>
#include <sys/wait.h>

#define SIZE (4 * PAGE)

static char *map(int fd)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void forks(int fd)
{
	char *at = map(fd), *own;

	at[0] = at[1] = 0;
	fflush(stdout);
	if (fork() == 0) {
		at[0] = 1;
		own = map(fd);
		own[1] = 1;
		_exit(0);
	}
	wait(NULL);
	line("fork.shared",
	     "child-wrote-inherited-mapping=%d child-wrote-own-mapping=%d",
	     at[0], at[1]);
	madvise(at, SIZE, MADV_DONTFORK);
	fflush(stdout);
	if (fork() == 0) {
		const char *reading = touch(at);

		/* "read SIGSEGV/1, write ..." */
		line("fork.after-DONTFORK.child", "%.*s",
		     (int)strcspn(reading + 5, ","), reading + 5);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	munmap(at, SIZE);
}

static void execs(int fd)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	fflush(stdout);
	if (fork() == 0) {
		execl("/proc/self/exe", "contract", "--is-open", number,
		      (char *)NULL);
		_exit(1);
	}
	wait(NULL);
}

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static ssize_t send_fd(int socket, int fd)
{
	union control control = {0};
	struct iovec iov = {(char[]){"x"}, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0);
}

static int receive_fd(int socket, int flags)
{
	union control control = {0};
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(socket, &msg, flags) < 0 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void received(int fd, int got)
{
	struct stat a, b;
	char *one = map(fd), *two = map(got);

	fstat(fd, &a);
	fstat(got, &b);
	one[7] = 99;
	line("scm.recv.CLOEXEC",
	     "same-ino=%d same-memory=%d getfd=%d getfl=0%o size=%lld sync=%s",
	     a.st_ino == b.st_ino, two[7] == 99, fcntl(got, F_GETFD),
	     fcntl(got, F_GETFL), (long long)b.st_size,
	     res(buf_sync(got, DMA_BUF_SYNC_READ)));
	munmap(one, SIZE);
	munmap(two, SIZE);
}

static void passes(void)
{
	int fd = buf_alloc(1 << 20, O_RDWR | O_CLOEXEC), sockets[2], got;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return;
	for (int i = 0; i < 2; i++) {
		n = send_fd(sockets[0], fd);
		line("scm.sendmsg", "%s %zd", res(n), n);
		got = receive_fd(sockets[1], i ? MSG_CMSG_CLOEXEC : 0);
		if (i && got >= 0)
			received(fd, got);
		close(got);
	}
	close(sockets[0]);
	close(sockets[1]);
	close(fd);
}

static void dups(void)
{
	int fd = buf_alloc(1 << 20, O_RDWR | O_CLOEXEC);
	int one = dup(fd), two = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	int three = dup2(fd, 200);

	line("dup",
	     "dup getfd=%d; F_DUPFD_CLOEXEC,100 -> %d getfd=%d; dup2 200 -> "
	     "%d; size via dup %lld",
	     fcntl(one, F_GETFD), two, fcntl(two, F_GETFD), three,
	     (long long)lseek(one, 0, SEEK_END));
	close(fd);
	close(two);
	close(three);
	line("dup.original-closed", "sync-via-dup=%s",
	     res(buf_sync(one, DMA_BUF_SYNC_READ)));
	close(one);
}

void walk_life(void)
{
	int fd = buf_alloc(SIZE, O_RDWR | O_CLOEXEC);
	char *p = map(fd);

	forks(fd);
	execs(fd);
	passes();
	dups();
	close(fd);
	p[2] = 3;
	line("close.mapping-lives", "p[2]=%d", p[2]);
	munmap(p, SIZE);
}
