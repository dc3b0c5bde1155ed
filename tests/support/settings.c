/* SPDX-License-Identifier: MIT */
#include "support/settings.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALUE_BYTES 64

bool settings_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	bool ok;

	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

static void read_value(const char *path, char ret[VALUE_BYTES])
{
	char line[256] = "", *value = line, *bracket;
	FILE *f = fopen(path, "re");

	if (!f || !fgets(line, sizeof(line), f))
		abort();
	fclose(f);
	bracket = strchr(line, '[');
	if (bracket)
		value = bracket + 1;
	value[strcspn(value, "] \n")] = '\0';
	snprintf(ret, VALUE_BYTES, "%.*s", VALUE_BYTES - 1, value);
}

/* What a process of its own does: nothing that ends the test ends it. */
_Noreturn static void wait_and_restore(int fd, const char *const *paths,
				       char values[][VALUE_BYTES])
{
	char byte;

	setsid();
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	(void)!read(fd, &byte, 1);
	for (unsigned int i = 0; paths[i]; i++)
		(void)settings_write(paths[i], values[i]);
	_exit(0);
}

void settings_guard(struct settings_guard *ret, const char *const *paths)
{
	char values[SETTINGS_MAX][VALUE_BYTES];
	int fds[2];

	for (unsigned int i = 0; paths[i]; i++)
		if (i < SETTINGS_MAX)
			read_value(paths[i], values[i]);
		else
			abort();
	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	ret->pid = fork();
	if (ret->pid < 0)
		abort();
	if (ret->pid == 0) {
		close(fds[1]);
		wait_and_restore(fds[0], paths, values);
	}
	close(fds[0]);
	ret->fd = fds[1];
}

void settings_restore(struct settings_guard *guard)
{
	close(guard->fd);
	waitpid(guard->pid, NULL, 0);
}
