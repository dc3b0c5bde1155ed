/* SPDX-License-Identifier: MIT */
#include "support/memcg.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define V1_ROOT "/sys/fs/cgroup/memory"
#define V2_ROOT "/sys/fs/cgroup"

char *const memcg_wrap[] = {
	(char[]){"/bin/sh"},
	(char[]){"-c"},
	(char[]){"echo $$ > \"$DMAHEAP_TEST_PROCS\" && exec \"$@\""},
	(char[]){"sh"},
	NULL,
};

static bool write_file(const struct memcg *cg, const char *file, uint64_t n)
{
	char path[320];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", cg->dir, file);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fprintf(f, "%" PRIu64, n) > 0;
	return fclose(f) == 0 && ok;
}

/* The number after @key in a file of lines "key number"; 0 when not there. */
static uint64_t find_number(const struct memcg *cg, const char *file,
			    const char *key)
{
	char path[320], name[64];
	uint64_t n = 0, found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", cg->dir, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fscanf(f, "%63s %" SCNu64, name, &n) == 2)
		if (strcmp(name, key) == 0)
			found = n;
	fclose(f);
	return found;
}

static bool v2_has_memory(void)
{
	char text[512] = "";
	FILE *f = fopen(V2_ROOT "/cgroup.subtree_control", "re");
	bool has;

	if (!f)
		return false;
	has = fgets(text, sizeof(text), f) && strstr(text, "memory");
	fclose(f);
	return has;
}

/* Those of test programs that were killed. */
static void remove_stale(const struct memcg *cg)
{
	const char *root = cg->v1 ? V1_ROOT : V2_ROOT;
	DIR *dir = opendir(root);
	struct dirent *entry;
	char path[320];
	int pid;

	while (dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "dmaheap-test-%d", &pid) != 1 ||
		    kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
		(void)rmdir(path);
	}
	if (dir)
		closedir(dir);
}

const char *memcg_create(struct memcg *cg, uint64_t limit_bytes)
{
	memset(cg, 0, sizeof(*cg));
	cg->v1 = access(V1_ROOT "/memory.limit_in_bytes", F_OK) == 0;
	if (!cg->v1 && !v2_has_memory())
		return "no memory cgroups here";
	remove_stale(cg);
	snprintf(cg->name, sizeof(cg->name), "/dmaheap-test-%d", (int)getpid());
	snprintf(cg->dir, sizeof(cg->dir), "%s%s", cg->v1 ? V1_ROOT : V2_ROOT,
		 cg->name);
	if (mkdir(cg->dir, 0755) < 0)
		return "may not make a memory cgroup";
	if (limit_bytes &&
	    !write_file(cg, cg->v1 ? "memory.limit_in_bytes" : "memory.max",
			limit_bytes)) {
		memcg_destroy(cg);
		return "may not limit a memory cgroup";
	}
	snprintf(cg->procs_env, sizeof(cg->procs_env),
		 "DMAHEAP_TEST_PROCS=%s/cgroup.procs", cg->dir);
	return NULL;
}

bool memcg_join(const struct memcg *cg)
{
	return write_file(cg, "cgroup.procs", (uint64_t)getpid());
}

void memcg_destroy(struct memcg *cg)
{
	static const struct timespec pause = {.tv_nsec = 1000000};

	/* The kernel needs a moment after the last process. */
	for (int i = 0; i < 1000 && rmdir(cg->dir) < 0 && errno == EBUSY; i++)
		nanosleep(&pause, NULL);
}

uint64_t memcg_shmem_bytes(const struct memcg *cg)
{
	return find_number(cg, "memory.stat", cg->v1 ? "total_shmem" : "shmem");
}

uint64_t memcg_oom_kills(const struct memcg *cg)
{
	return find_number(cg, cg->v1 ? "memory.oom_control" : "memory.events",
			   "oom_kill");
}
