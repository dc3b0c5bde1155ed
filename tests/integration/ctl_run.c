/* SPDX-License-Identifier: MIT */
#include "integration/ctl_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"

struct ctl_result ctl_result;

static void split(char *line, char **words)
{
	int n = 0;

	words[n++] = (char *)"dmaheapctl";
	while (*line && n < CTL_WORDS_MAX - 1) {
		char end = *line == '\'' ? '\'' : ' ';

		if (*line == ' ') {
			line++;
			continue;
		}
		line += *line == '\'';
		words[n++] = line;
		line += strcspn(line, end == ' ' ? " " : "'");
		if (*line)
			*line++ = '\0';
	}
	words[n] = NULL;
}

static pid_t spawn(const char *line, int out, int err)
{
	char *words[CTL_WORDS_MAX], copy[1024];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", line);
	split(copy, words);
	setenv("DMAHEAP_SOCKET", it_daemon.socket, 1);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	T_REQUIRE(posix_spawn(&pid, DMAHEAPCTL_PATH, &actions, &attr, words,
			      environ) == 0);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	T_REQUIRE(waitpid(pid, &status, 0) == pid);
	ctl_result.status = WIFEXITED(status) ? WEXITSTATUS(status)
					      : 128 + WTERMSIG(status);
	return ctl_result.status;
}

static int temporary(void)
{
	char path[] = "/tmp/ctl-run.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	T_REQUIRE(fd >= 0);
	unlink(path);
	return fd;
}

static void slurp(int fd, char *to, size_t size)
{
	ssize_t n = pread(fd, to, size - 1, 0);

	to[n > 0 ? n : 0] = '\0';
	close(fd);
}

int ctl(const char *line)
{
	int out = temporary(), err = temporary();

	wait_for(spawn(line, out, err));
	slurp(out, ctl_result.out, sizeof(ctl_result.out));
	slurp(err, ctl_result.err, sizeof(ctl_result.err));
	return ctl_result.status;
}

json_t *ctl_json(const char *line)
{
	char with_json[1024];
	json_error_t why;
	json_t *json;

	snprintf(with_json, sizeof(with_json), "%s --json", line);
	if (ctl(with_json) != 0)
		fprintf(stderr, "%s: %s", line, ctl_result.err);
	CU_ASSERT_EQUAL(ctl_result.status, 0);
	json = json_loads(ctl_result.out, JSON_REJECT_DUPLICATES, &why);
	if (!json)
		fprintf(stderr, "%s: %s\n", line, why.text);
	CU_ASSERT_PTR_NOT_NULL(json);
	return json;
}

pid_t ctl_start(const char *line, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	T_REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
	pid = spawn(line, fds[1], STDERR_FILENO);
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

int ctl_end(pid_t pid, int signal)
{
	kill(pid, signal);
	return wait_for(pid);
}

void ctl_check_keys(const json_t *object, const char *keys, int line)
{
	char copy[512], *rest = NULL;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *key = strtok_r(copy, " ", &rest); key;
	     key = strtok_r(NULL, " ", &rest)) {
		n++;
		if (!json_object_get(object, key)) {
			fprintf(stderr, "line %d: no key %s\n", line, key);
			CU_FAIL("a key is missing");
		}
	}
	if (json_object_size(object) != n) {
		fprintf(stderr, "line %d: %zu keys, not %zu\n", line,
			json_object_size(object), n);
		CU_FAIL("there are other keys");
	}
}

const char *ctl_text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

json_int_t ctl_number_at(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

bool ctl_said(const char *part)
{
	return strstr(ctl_result.out, part) != NULL;
}

bool ctl_complained(const char *part)
{
	return strstr(ctl_result.err, part) != NULL;
}
