/* SPDX-License-Identifier: MIT */
#include "run/program.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "run/util.h"

/* A message to or of the child; with FILTERED goes the listener. */
struct word {
	enum {
		WORD_GO,
		WORD_FILTERED,
		WORD_FILTER_FAILED,
		WORD_EXEC_FAILED
	} kind;
	int err;
	char socket_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* sendmsg(), because write() may be among the notified calls. */
static int send_word(int socket, const struct word *word, int fd)
{
	struct iovec iov = {(void *)(uintptr_t)word, sizeof(*word)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;
	struct cmsghdr *cmsg;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Return: 0, -EPIPE (the other end is closed), or a negated errno. */
static int receive_word(int socket, struct word *ret, int *ret_fd)
{
	struct iovec iov = {ret, sizeof(*ret)};
	union control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;
	ssize_t n;

	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	cmsg = n ? CMSG_FIRSTHDR(&msg) : NULL;
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS && ret_fd)
		memcpy(ret_fd, CMSG_DATA(cmsg), sizeof(*ret_fd));
	return n == (ssize_t)sizeof(*ret) ? 0 : -EPIPE;
}

static _Noreturn void child(int socket, const struct program_setup *setup)
{
	struct word word;
	int listener;

	/* Without a word to go on the supervisor has failed, and said so. */
	if (receive_word(socket, &word, NULL))
		_exit(1);
	if (word.socket_path[0])
		(void)setenv("DMAHEAP_SOCKET", word.socket_path, 1);
	listener = filter_install(&setup->filter);
	word.kind = listener < 0 ? WORD_FILTER_FAILED : WORD_FILTERED;
	word.err = listener < 0 ? -listener : 0;
	if (send_word(socket, &word, listener) || listener < 0)
		_exit(1);
	(void)close(listener);
	(void)sigprocmask(SIG_SETMASK, &setup->signal_mask, NULL);
	(void)execvp(setup->argv[0], setup->argv);
	word.kind = WORD_EXEC_FAILED;
	word.err = errno;
	(void)send_word(socket, &word, -1);
	_exit(word.err == ENOENT ? 127 : 126);
}

int program_fork(struct program *ret, const struct program_setup *setup)
{
	int sockets[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		(void)close(sockets[0]);
		(void)close(sockets[1]);
		return r;
	}
	if (pid == 0) {
		(void)close(sockets[0]);
		child(sockets[1], setup);
	}
	(void)close(sockets[1]);
	ret->pid = pid;
	ret->socket = sockets[0];
	return 0;
}

/* The program may change its directory: a path that is relative to ours is
 * made absolute, unless that is too long for a socket's address. */
static void set_socket_path(struct word *word, const char *path)
{
	char cwd[PATH_MAX], absolute[2 * PATH_MAX];

	(void)snprintf(word->socket_path, sizeof(word->socket_path), "%s",
		       path);
	if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		return;
	(void)snprintf(absolute, sizeof(absolute), "%s/%s", cwd, path);
	if (strlen(absolute) < sizeof(word->socket_path))
		memcpy(word->socket_path, absolute, strlen(absolute) + 1);
}

int program_start(struct program *program, const char *socket_path,
		  int *ret_listener)
{
	struct word word = {.kind = WORD_GO};
	int r;

	if (socket_path)
		set_socket_path(&word, socket_path);
	r = send_word(program->socket, &word, -1);
	if (r == 0)
		r = receive_word(program->socket, &word, ret_listener);
	if (r == 0 && word.kind == WORD_FILTER_FAILED)
		r = -word.err;
	return r;
}

int program_exec_error(struct program *program)
{
	struct word word;
	int err = 0;

	/* The socket is close-on-exec: its end means success. */
	if (receive_word(program->socket, &word, NULL) == 0)
		err = word.err;
	(void)close(program->socket);
	program->socket = -1;
	return err;
}
