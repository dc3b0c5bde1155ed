/* SPDX-License-Identifier: MIT */
/* What the daemon's program finds out when it is asked to probe. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "ctl/ctl.h"
#include "ctl/facts.h"

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

/* [{name, ok, value, reason}] Return: false when it is something else. */
static bool add_json(struct facts *facts, const char *text, size_t n)
{
	json_t *root = json_loadb(text, n, 0, NULL), *entry;
	bool ok = json_is_array(root) && json_array_size(root) > 0;
	size_t i;

	json_array_foreach(root, i, entry)
	{
		const char *name = NULL, *value = "", *reason = "";
		int good = 0;

		if (json_unpack(entry, "{s:s, s:b, s?s, s?s}", "name", &name,
				"ok", &good, "value", &value, "reason",
				&reason) < 0) {
			ok = false;
			break;
		}
		facts_add(facts, name, good, value, reason);
	}
	json_decref(root);
	return ok;
}

void facts_add_probe(struct facts *facts)
{
	static char output[OUTPUT_MAX_BYTES];
	char path[PATH_MAX];
	int fd, err, status;
	pid_t pid;
	size_t n;

	find_daemon(path, sizeof(path));
	err = start(path, &pid, &fd);
	if (err) {
		facts_add(facts, "dmaheapd", false, "not found", strerror(err));
		return;
	}
	n = read_all(fd, output, sizeof(output));
	close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
	    !add_json(facts, output, n))
		facts_add(facts, "dmaheapd", false, path,
			  "its --probe fails or prints something else");
}
