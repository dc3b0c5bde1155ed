/* SPDX-License-Identifier: MIT */
#include "run/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/supervisor.h"
#include "run/util.h"

/*
 * The model: the program is in our process group, so the terminal's signals
 * reach it without us. What somebody else sends to us alone is passed on.
 */
struct launcher {
	int socket;
	int signals;
	sigset_t mask; /* as it was when we began */
};

/* What cannot be passed on, or belongs to this process alone. */
static void relayed_signals(sigset_t *set)
{
	static const int own[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGSEGV,
				  SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,
				  SIGSYS,  SIGTRAP, SIGPIPE};

	(void)sigfillset(set);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		(void)sigdelset(set, own[i]);
}

/* SI_KERNEL: the terminal sent it, to the whole group. */
static void relay(const struct launcher *launcher)
{
	struct signalfd_siginfo info;
	struct launcher_word word = {.kind = LAUNCHER_SIGNAL};

	if (read(launcher->signals, &info, sizeof(info)) != sizeof(info) ||
	    info.ssi_code == SI_KERNEL)
		return;
	word.value = (int)info.ssi_signo;
	word.sender = (pid_t)info.ssi_pid;
	(void)send(launcher->socket, &word, sizeof(word), MSG_NOSIGNAL);
}

static void default_signal(int sig)
{
	sigset_t set;

	(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)raise(sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static bool is_stopped(pid_t pid)
{
	char path[64], text[256];
	const char *comm_end;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	comm_end = strrchr(text, ')');
	return comm_end && strncmp(comm_end, ") T", 3) == 0;
}

/*
 * The program stopped: so does the job, until somebody continues it. A signal
 * that stopped us too may have been undone before we hear of the program; the
 * pause lets one that continues the group reach all of it.
 */
static void stop(pid_t program, int sig)
{
	sigset_t set;

	if (!is_stopped(program))
		return;
	(void)usleep(20000);
	if (!is_stopped(program))
		return;

	default_signal(sig);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static int ended(const struct launcher_word *word, bool fail_on_leak)
{
	const struct rlimit no_core = {0, 0};

	if (WIFSIGNALED(word->value)) {
		/* The program has left the core, if there is to be one. */
		(void)setrlimit(RLIMIT_CORE, &no_core);
		default_signal(WTERMSIG(word->value));
		return 128 + WTERMSIG(word->value);
	}
	if (WEXITSTATUS(word->value) == 0 && fail_on_leak && word->has_leaks)
		return 1;
	return WEXITSTATUS(word->value);
}

/* Return: whether it is over; then @ret_status is set. */
static bool hear(const struct launcher *launcher, const struct options *options,
		 int *ret_status)
{
	struct launcher_word word;
	ssize_t n = recv(launcher->socket, &word, sizeof(word), 0);

	if (n < 0 && errno == EINTR)
		return false;
	if (n != (ssize_t)sizeof(word)) {
		run_message("the supervisor died: the program may still run, "
			    "and its calls to open fail with ENOSYS");
		*ret_status = 1;
		return true;
	}
	switch (word.kind) {
	case LAUNCHER_STOPPED:
		stop(word.sender, word.value);
		return false;
	case LAUNCHER_ENDED:
		*ret_status = ended(&word, options->fail_on_leak);
		return true;
	case LAUNCHER_FAILED:
		*ret_status = word.value;
		return true;
	case LAUNCHER_SIGNAL:
		break;
	}
	return false;
}

/* Descriptors that the program may close to be noticed must not live here. */
static void let_go(const struct launcher *launcher)
{
	const int kept[] = {STDERR_FILENO, launcher->socket, launcher->signals};

	fds_close_others(kept, ARRAY_SIZE(kept));
	fds_fill_standard();
}

static int wait_for_end(const struct launcher *launcher,
			const struct options *options)
{
	int status = 1;

	for (;;) {
		struct pollfd polled[] = {
			{.fd = launcher->socket, .events = POLLIN},
			{.fd = launcher->signals, .events = POLLIN},
		};

		if (poll(polled, ARRAY_SIZE(polled), -1) < 0)
			continue;
		if (polled[1].revents)
			relay(launcher);
		if (polled[0].revents && hear(launcher, options, &status))
			return status;
	}
}

int launcher_run(const struct options *options)
{
	struct launcher launcher;
	int sockets[2];
	sigset_t relayed;
	pid_t pid;

	relayed_signals(&relayed);
	(void)sigprocmask(SIG_BLOCK, &relayed, &launcher.mask);
	launcher.signals = signalfd(-1, &relayed, SFD_CLOEXEC);
	if (launcher.signals < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		run_message("signalfd or socketpair: %s", strerror(errno));
		return 1;
	}
	pid = fork();
	if (pid < 0) {
		run_message("fork: %s", strerror(errno));
		return 1;
	}
	if (pid == 0) {
		(void)close(sockets[0]);
		(void)close(launcher.signals);
		supervisor_run(options, sockets[1], &launcher.mask);
	}
	launcher.socket = sockets[0];
	(void)close(sockets[1]);
	let_go(&launcher);
	return wait_for_end(&launcher, options);
}
