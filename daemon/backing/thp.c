/* SPDX-License-Identifier: MIT */
#include "backing/thp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/*
 * State file: one line "ORDER VALUE" per switch that was changed, written
 * before the switch is. It is locked for as long as its daemon lives, so a file
 * that is there and not locked belongs to one that crashed.
 */

#define DIR         "/sys/kernel/mm/transparent_hugepage/"
#define VALUE_BYTES 32
#define OURS        "advise"

struct thp {
	int state_fd;
	char *state_file;
	char before[THP_ORDER_MAX + 1][VALUE_BYTES]; /* "": not changed */
};

static void switch_path(unsigned int order, char path[128])
{
	snprintf(path, 128, DIR "hugepages-%" PRIu64 "kB/shmem_enabled",
		 thp_bytes(order) / 1024);
}

/* The value in brackets. Return: false if there is no such switch. */
static bool read_switch(const char *path, char value[VALUE_BYTES])
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[128], *begin, *end;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end || end - begin > VALUE_BYTES - 1)
		return false;
	*end = '\0';
	snprintf(value, VALUE_BYTES, "%s", begin + 1);
	return true;
}

static int write_switch(const char *path, const char *value)
{
	_cleanup_(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(value);

	if (fd < 0 || write(fd, value, (size_t)len) != len)
		return err_raise(-errno);
	return 0;
}

static bool value_is_on(const char *value)
{
	return strcmp(value, "always") == 0 || strcmp(value, "advise") == 0 ||
	       strcmp(value, "within_size") == 0 || strcmp(value, "force") == 0;
}

static bool order_is_on(unsigned int order)
{
	char path[128], value[VALUE_BYTES];

	switch_path(order, path);
	if (!read_switch(path, value))
		return false;
	if (strcmp(value, "inherit") == 0 &&
	    !read_switch(DIR "shmem_enabled", value))
		return false;
	return value_is_on(value);
}

uint32_t thp_enabled_orders(void)
{
	uint32_t mask = 0;

	for (unsigned int order = 1; order <= THP_ORDER_MAX; order++)
		mask |= (uint32_t)order_is_on(order) << order;
	return mask;
}

uint32_t thp_known_orders(void)
{
	char path[128];
	uint32_t mask = 0;

	for (unsigned int order = 1; order <= THP_ORDER_MAX; order++) {
		switch_path(order, path);
		mask |= (uint32_t)(access(path, F_OK) == 0) << order;
	}
	return mask;
}

#define SWITCH_ALL  DIR "shmem_enabled"
#define SWITCH_2MIB DIR "hugepages-2048kB/shmem_enabled"

const struct thp_hindrance *thp_collapse_hindrance(void)
{
	static const struct thp_hindrance disabled =
		{"whoever started this process has set PR_SET_THP_DISABLE", ""};
	static const struct thp_hindrance deny = {"shmem_enabled is deny",
						  "echo never > " SWITCH_ALL};
	static const struct thp_hindrance never =
		{"hugepages-2048kB/shmem_enabled is never",
		 "echo inherit > " SWITCH_2MIB};
	static const struct thp_hindrance force =
		{"shmem_enabled is force, hugepages-2048kB's is not inherit",
		 "echo inherit > " SWITCH_2MIB};
	char all[VALUE_BYTES] = "", two_mib[VALUE_BYTES] = "inherit";

	(void)read_switch(SWITCH_ALL, all);
	(void)read_switch(SWITCH_2MIB, two_mib);
	if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
		return &disabled;
	if (strcmp(all, "deny") == 0)
		return &deny;
	if (strcmp(two_mib, "never") == 0)
		return &never;
	if (strcmp(all, "force") == 0 && strcmp(two_mib, "inherit") != 0)
		return &force;
	return NULL;
}

uint64_t thp_counter(unsigned int order, const char *name)
{
	char path[160];
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), DIR "hugepages-%" PRIu64 "kB/stats/%s",
		 thp_bytes(order) / 1024, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &n) != 1)
		n = 0;
	(void)fclose(f);
	return n;
}

/* Puts one switch back, unless it is no longer as we left it. */
static void restore(unsigned int order, const char *before)
{
	char path[128], now[VALUE_BYTES];

	switch_path(order, path);
	if (read_switch(path, now) && strcmp(now, OURS) == 0)
		(void)write_switch(path, before);
}

/* What a daemon that crashed has noted. */
static void restore_from_file(int fd)
{
	char text[1024];
	char value[VALUE_BYTES];
	unsigned int order;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *line = text;

	if (n <= 0)
		return;
	text[n] = '\0';
	while (line && *line) {
		if (sscanf(line, "%u %31s", &order, value) == 2 &&
		    order <= THP_ORDER_MAX)
			restore(order, value);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
}

/* The directory of the state file, one level: /run starts out empty. */
static void make_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[256];

	if (!slash || slash == path || (size_t)(slash - path) >= sizeof(dir))
		return;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	(void)mkdir(dir, 0755);
}

int thp_new(struct thp **ret, const char *state_file, char *reason)
{
	struct thp *thp = calloc(1, sizeof(*thp));
	int r = 0;

	if (!thp)
		return err_raise(-ENOMEM);
	thp->state_fd = -1;
	thp->state_file = strdup(state_file ? state_file : THP_STATE_FILE);
	if (thp->state_file) {
		make_parent(thp->state_file);
		thp->state_fd =
			open(thp->state_file,
			     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	if (thp->state_fd < 0) {
		r = -errno;
		snprintf(reason, THP_REASON_BYTES, "manage_thp: state file: %s",
			 strerror(-r));
	} else if (flock(thp->state_fd, LOCK_EX | LOCK_NB) < 0) {
		r = -EBUSY;
		snprintf(reason, THP_REASON_BYTES,
			 "manage_thp: another daemon has the switches");
	}
	if (r) {
		fd_close(thp->state_fd);
		free(thp->state_file);
		free(thp);
		return err_raise(r);
	}
	restore_from_file(thp->state_fd);
	(void)!ftruncate(thp->state_fd, 0);
	*ret = thp;
	return 0;
}

/* Return: false if it could not be noted: then it is not changed either. */
static bool note(struct thp *thp, unsigned int order, const char *value)
{
	char line[VALUE_BYTES + 16];
	int len = snprintf(line, sizeof(line), "%u %s\n", order, value);

	if (lseek(thp->state_fd, 0, SEEK_END) < 0 ||
	    write(thp->state_fd, line, (size_t)len) != len)
		return false;
	snprintf(thp->before[order], VALUE_BYTES, "%s", value);
	return true;
}

uint32_t thp_enable(struct thp *thp, uint32_t orders)
{
	char path[128], value[VALUE_BYTES];

	for (unsigned int order = 1; order <= THP_ORDER_MAX; order++) {
		if (!(orders & (1u << order)) || order_is_on(order))
			continue;
		switch_path(order, path);
		if (!read_switch(path, value) || thp->before[order][0] ||
		    !note(thp, order, value))
			continue;
		(void)write_switch(path, OURS);
	}
	return thp_enabled_orders() & orders;
}

struct thp *thp_free(struct thp *thp)
{
	if (!thp)
		return NULL;
	for (unsigned int order = 1; order <= THP_ORDER_MAX; order++)
		if (thp->before[order][0])
			restore(order, thp->before[order]);
	(void)unlink(thp->state_file);
	fd_close(thp->state_fd);
	free(thp->state_file);
	free(thp);
	return NULL;
}
