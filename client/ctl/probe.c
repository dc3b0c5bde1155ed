/* SPDX-License-Identifier: MIT */
#include "ctl/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX_BYTES 65536u

/* Beside this program or in sbin there, else through PATH. */
static void find_daemon(char *path, size_t size)
{
	static const char *const places[] = {"dmaheapd", "../sbin/dmaheapd"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		if (snprintf(path, size, "%.*s/%s", (int)(slash - self), self,
			     places[i]) < (int)size &&
		    access(path, X_OK) == 0)
			return;
	}
	snprintf(path, size, "dmaheapd");
}

/* Starts it with its output in a pipe. Return: 0 or an errno. */
static int start(const char *path, pid_t *ret_pid, int *ret_fd)
{
	char *const argv[] = {(char *)"dmaheapd", (char *)"--probe",
			      (char *)"--json", NULL};
	posix_spawn_file_actions_t actions;
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	err = posix_spawnp(ret_pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (err)
		close(fds[0]);
	else
		*ret_fd = fds[0];
	return err;
}

static size_t read_all(int fd, char *buffer, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, buffer + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

/* An array of objects with a name, a verdict and texts. */
static bool is_findings(json_t *root)
{
	json_t *entry;
	size_t i;

	if (!json_is_array(root) || json_array_size(root) == 0)
		return false;
	json_array_foreach(root, i, entry)
	{
		if (!json_is_string(json_object_get(entry, "name")) ||
		    !json_is_boolean(json_object_get(entry, "ok")))
			return false;
	}
	return true;
}

json_t *probe_run(void)
{
	static char output[OUTPUT_MAX_BYTES];
	char path[PATH_MAX];
	int fd, err, status;
	json_t *root;
	pid_t pid;
	size_t n;

	find_daemon(path, sizeof(path));
	err = start(path, &pid, &fd);
	if (err) {
		ctl_fail("doctor: cannot run %s --probe: %s", path,
			 strerror(err));
		return NULL;
	}
	n = read_all(fd, output, sizeof(output));
	close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	root = json_loadb(output, n, 0, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && is_findings(root))
		return root;
	json_decref(root);
	ctl_fail("doctor: %s --probe --json fails or prints something else",
		 path);
	return NULL;
}
