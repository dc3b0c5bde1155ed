/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#define PATIENCE_MS 60000

/* Files rather than pipes: nothing has to be read while it runs. */
static int output_file(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	T_REQUIRE(fd >= 0);
	return fd;
}

void command_start(struct command *command, const char *const *argv,
		   const char *const *env)
{
	memset(command, 0, sizeof(*command));
	command->out_fd = output_file();
	command->err_fd = output_file();
	command->pid = fork();
	T_REQUIRE(command->pid >= 0);
	if (command->pid > 0)
		return;
	/*
	 * A group of its own, with us as a parent outside of it: in an orphaned
	 * group, as without a shell above, the kernel discards SIGTSTP.
	 */
	(void)setpgid(0, 0);
	for (; env && *env; env++)
		putenv((char *)(uintptr_t)*env);
	(void)fcntl(command->out_fd, F_SETFL, O_APPEND);
	(void)fcntl(command->err_fd, F_SETFL, O_APPEND);
	dup2(command->out_fd, STDOUT_FILENO);
	dup2(command->err_fd, STDERR_FILENO);
	execvp(argv[0], (char **)(uintptr_t)argv);
	_exit(127);
}

static char *text_of(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);
	ssize_t n;

	T_REQUIRE(text != NULL);
	n = pread(fd, text, (size_t)size, 0);
	if (n >= 0)
		text[n] = '\0';
	return text;
}

bool command_wait_for(struct command *command, const char *text)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		char *now = text_of(command->out_fd);
		bool found = strstr(now, text) != NULL;

		free(now);
		if (found)
			return true;
		usleep(10000);
	}
	return false;
}

void command_wait(struct command *command)
{
	int pidfd = (int)syscall(SYS_pidfd_open, command->pid, 0);
	struct pollfd polled = {.fd = pidfd, .events = POLLIN};

	T_REQUIRE(pidfd >= 0);
	if (poll(&polled, 1, PATIENCE_MS) == 0)
		kill(command->pid, SIGKILL);
	close(pidfd);
	T_REQUIRE(waitpid(command->pid, &command->status, 0) == command->pid);
	command->out = text_of(command->out_fd);
	command->err = text_of(command->err_fd);
	close(command->out_fd);
	close(command->err_fd);
}

void command_run(struct command *command, const char *const *argv,
		 const char *const *env)
{
	command_start(command, argv, env);
	command_wait(command);
}

void command_end(struct command *command)
{
	free(command->out);
	free(command->err);
}

/* Some containers forbid it; dmaheap-run says why, and so do we. */
void skip_without_seccomp(const char *line)
{
	char text[512] = "";
	FILE *pipe = popen(line, "re");

	while (pipe && !strstr(text, "seccomp") &&
	       fgets(text, sizeof(text), pipe))
		;
	if (pipe)
		pclose(pipe);
	text[strcspn(text, "\n")] = '\0';
	if (strstr(text, "seccomp"))
		t_skip(text);
}
