/* SPDX-License-Identifier: MIT */
/*
 * failing-calls FILE PROGRAM ARGS...: runs a program and writes into FILE one
 * line "CALL ERRNO" for each pair of system call and error that any of its
 * threads and children met, sorted. Exits as the program; SIGTERM is passed on.
 */
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX   600
#define ERRNOS_MAX  200
#define TASKS_MAX   256
#define CANNOT_RUN  126
#define SYSCALL_SIG (SIGTRAP | 0x80)

static bool seen[CALLS_MAX][ERRNOS_MAX];
static volatile pid_t program;

/* The call that each stopped task is in: the exit stop does not name it. */
static struct {
	pid_t tid;
	long call;
} tasks[TASKS_MAX];

static void pass_on(int sig)
{
	if (program > 0)
		kill(program, sig);
}

static long *call_of(pid_t tid)
{
	int slot = 0;

	for (int i = 0; i < TASKS_MAX; i++) {
		if (tasks[i].tid == tid)
			return &tasks[i].call;
		if (!tasks[i].tid)
			slot = i;
	}
	tasks[slot].tid = tid;
	tasks[slot].call = -1;
	return &tasks[slot].call;
}

static void forget(pid_t tid)
{
	for (int i = 0; i < TASKS_MAX; i++)
		if (tasks[i].tid == tid)
			tasks[i].tid = 0;
}

static void look(pid_t tid)
{
	struct __ptrace_syscall_info info;
	long *call = call_of(tid);

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) <
	    0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		*call = (long)info.entry.nr;
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && info.exit.is_error &&
		   *call >= 0 && *call < CALLS_MAX &&
		   -info.exit.rval < ERRNOS_MAX) {
		seen[*call][-info.exit.rval] = true;
	}
}

static int trace(void)
{
	int status, result = CANNOT_RUN;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		int sig = 0;

		if (tid < 0)
			continue;
		if (!WIFSTOPPED(status)) {
			forget(tid);
			if (tid == program)
				result = WIFEXITED(status)
						 ? WEXITSTATUS(status)
						 : 128 + WTERMSIG(status);
			continue;
		}
		if (WSTOPSIG(status) == SYSCALL_SIG)
			look(tid);
		else if (WSTOPSIG(status) != SIGTRAP &&
			 WSTOPSIG(status) != SIGSTOP)
			sig = WSTOPSIG(status);
		ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(long)sig);
	}
	return result;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int report(const char *path)
{
	static char *lines[CALLS_MAX * 4];
	size_t n = 0;
	FILE *f = fopen(path, "we");

	for (int c = 0; c < CALLS_MAX; c++) {
		for (int e = 1; e < ERRNOS_MAX; e++) {
			char *name;

			/* Above 132 are restarts that no program sees. */
			if (!seen[c][e] || !strerrorname_np(e) ||
			    n == sizeof(lines) / sizeof(lines[0]))
				continue;
			name = seccomp_syscall_resolve_num_arch(
				SCMP_ARCH_NATIVE, c);
			if (asprintf(&lines[n], "%s %s", name ? name : "?",
				     strerrorname_np(e)) > 0)
				n++;
			free(name);
		}
	}
	qsort(lines, n, sizeof(lines[0]), compare);
	for (size_t i = 0; f && i < n; i++) {
		fprintf(f, "%s\n", lines[i]);
		free(lines[i]);
	}
	return f && fclose(f) == 0;
}

int main(int argc, char **argv)
{
	const int options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
			    PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			    PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int status, result;

	if (argc < 3) {
		fprintf(stderr, "usage: %s FILE PROGRAM ARGS...\n", argv[0]);
		return 2;
	}
	signal(SIGTERM, pass_on);
	program = fork();
	if (program == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(CANNOT_RUN);
		raise(SIGSTOP);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	/* What the program inherits is its own: a pipe that it closes ends. */
	close_range(3, ~0u, 0);
	if (program < 0 || waitpid(program, &status, 0) != program ||
	    !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, program, NULL, (void *)(long)options) < 0)
		return CANNOT_RUN;
	ptrace(PTRACE_SYSCALL, program, NULL, NULL);
	result = trace();
	return report(argv[1]) ? result : CANNOT_RUN;
}
