/* SPDX-License-Identifier: MIT */
#include "server/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

/* Runs @body in a confined child. Return: its wait status. */
static int confined(enum confine_mode mode, int (*body)(void))
{
	int status;
	pid_t pid = fork();

	T_REQUIRE(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(confine_process(mode) ? 200 : body());
	}
	T_REQUIRE(waitpid(pid, &status, 0) == pid);
	return status;
}

static int exits_with(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int forbidden_calls_fail(void)
{
	char *const none[] = {NULL};

	if (execve("/bin/true", none, none) >= 0 || errno != EPERM)
		return 1;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 2;
	if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0 || errno != EPERM)
		return 3;
	if (ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) >= 0 || errno != EPERM)
		return 4;
	if (mount("none", "/mnt", "tmpfs", 0, NULL) >= 0 || errno != EPERM)
		return 5;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0) != MAP_FAILED ||
	    errno != EPERM)
		return 6;
	if (kill(getppid(), 0) >= 0 || errno != EPERM)
		return 7;
	return 0;
}

static int needed_calls_work(void)
{
	int fd = memfd_create("x", MFD_CLOEXEC);
	void *p;

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 1;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || munmap(p, 4096) < 0 || close(fd) < 0)
		return 2;
	if (socket(AF_UNIX, SOCK_SEQPACKET, 0) < 0)
		return 3;
	return 0;
}

static int calls_exec(void)
{
	char *const none[] = {NULL};

	execve("/bin/true", none, none);
	return 0;
}

static void *exec_in_thread(void *go)
{
	char *const none[] = {NULL};
	char c;

	if (read(*(int *)go, &c, 1) != 1)
		return NULL;
	return execve("/bin/true", none, none) < 0 && errno == EPERM ? go
								     : NULL;
}

static void a_forbidden_call_fails(void)
{
	CU_ASSERT_EQUAL(exits_with(confined(CONFINE_ON, forbidden_calls_fail)),
			0);
}

static void a_needed_call_works(void)
{
	CU_ASSERT_EQUAL(exits_with(confined(CONFINE_KILL, needed_calls_work)),
			0);
}

static void with_kill_a_forbidden_call_ends_the_process(void)
{
	int status = confined(CONFINE_KILL, calls_exec);

	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static void threads_that_run_already_are_confined_too(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int go[2];
		pthread_t thread;
		void *result = NULL;

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (pipe(go) < 0 ||
		    pthread_create(&thread, NULL, exec_in_thread, &go[0]) ||
		    confine_process(CONFINE_ON) || write(go[1], "x", 1) != 1)
			_exit(1);
		pthread_join(thread, &result);
		_exit(result ? 0 : 2);
	}
	T_REQUIRE(waitpid(pid, &status, 0) == pid);
	CU_ASSERT_EQUAL(exits_with(status), 0);
}

static void off_changes_nothing(void)
{
	CU_ASSERT_EQUAL(exits_with(confined(CONFINE_OFF, calls_exec)), 0);
}

static bool can_be_confined(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(confine_process(CONFINE_ON) ? 1 : 0);
	}
	return waitpid(pid, &status, 0) == pid && exits_with(status) == 0;
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a forbidden call fails", a_forbidden_call_fails},
		{"a needed call works", a_needed_call_works},
		{"with kill a forbidden call ends the process",
		 with_kill_a_forbidden_call_ends_the_process},
		{"threads that run already are confined, too",
		 threads_that_run_already_are_confined_too},
		{"off changes nothing", off_changes_nothing},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "confine", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	if (!can_be_confined())
		t_skip("no seccomp here, or a build with sanitizers");
	return t_main(argc, argv, suites);
}
