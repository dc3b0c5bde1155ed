/* SPDX-License-Identifier: MIT */
#include "backing/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backing/backing.h"
#include "backing/hostmem.h"
#include "backing/hugetlb.h"
#include "backing/lifetime.h"
#include "backing/memfd.h"
#include "backing/pressure.h"
#include "backing/selftest.h"
#include "backing/thp.h"
#include "base/fd.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define FDS_ENOUGH     4096u
#define WATCHES_ENOUGH 16384u
#define MEMLOCK_ENOUGH MIB(8)
#define BUDGET_ENOUGH  MIB(256)

struct probe {
	struct probe_fact *facts;
	unsigned int n;
	uint32_t orders;
};

static struct probe_fact *add(struct probe *p, const char *name)
{
	struct probe_fact *f = &p->facts[p->n++];

	assert(p->n <= PROBE_FACTS_MAX);
	memset(f, 0, sizeof(*f));
	f->name = name;
	f->kernel = "";
	f->ok = true;
	return f;
}

_printf_(2, 3) static void say(char text[PROBE_TEXT_BYTES], const char *format,
			       ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, PROBE_TEXT_BYTES, format, ap);
	va_end(ap);
}

static uint64_t read_number(const char *path, uint64_t otherwise)
{
	FILE *f = fopen(path, "re");
	uint64_t n;

	if (!f)
		return otherwise;
	if (fscanf(f, "%" SCNu64, &n) != 1)
		n = otherwise;
	(void)fclose(f);
	return n;
}

static void probe_plain(struct probe *p)
{
	struct probe_fact *f = add(p, "plain");
	int fd = -1;
	int r = memfd_make("dmaheap:probe", KIB(4), false, &fd);

	fd_close(fd);
	f->ok = r == 0;
	say(f->value, "%s", r ? strerror(-r) : "sealed memfds");
	if (r) {
		say(f->consequence, "the daemon cannot start");
		f->kernel = "3.17";
		say(f->command, "mount -t proc proc /proc");
	}
}

static void probe_collapse(struct probe *p)
{
	const struct thp_hindrance *h = thp_collapse_hindrance();
	struct probe_fact *f = add(p, "collapse");
	char why[SELFTEST_REASON_BYTES] = "";

	f->ok = selftest_collapse(why);
	say(f->value, "%s", f->ok ? "2 MiB folios by MADV_COLLAPSE" : why);
	if (!f->ok) {
		say(f->consequence, "without folio too, buffers are of 4 KiB "
				    "pages: first touch is 20 to 40 times "
				    "slower");
		f->kernel = "6.1";
		say(f->command, "%s",
		    h ? h->command : "echo 1 > /proc/sys/vm/compact_memory");
	}
}

static void probe_folio(struct probe *p)
{
	struct probe_fact *f = add(p, "folio");
	char why[SELFTEST_REASON_BYTES] = "";
	uint32_t lacking = p->orders & ~1u & ~thp_enabled_orders();
	unsigned int order = lacking ? (unsigned int)__builtin_ctz(lacking) : 0;

	f->ok = !lacking && selftest_folio(p->orders, why);
	if (f->ok) {
		say(f->value, "each block is a folio of its order");
		return;
	}
	say(f->consequence, "a buffer's real page orders are not those of its "
			    "composition; backing falls to collapse or plain");
	f->kernel = "6.11";
	if (!lacking) {
		say(f->value, "%s", why);
	} else if (lacking & ~thp_known_orders()) {
		say(f->value, "no per-size switches for shared memory");
	} else {
		say(f->value, "hugepages-%" PRIu64 "kB/shmem_enabled is off",
		    thp_bytes(order) / 1024);
		say(f->command,
		    "for s in 64 1024 2048; do echo advise > /sys/kernel/mm/"
		    "transparent_hugepage/hugepages-${s}kB/shmem_enabled; done"
		    " (or [backing] manage_thp = yes, as root)");
	}
}

static void probe_hugetlb(struct probe *p)
{
	struct probe_fact *f = add(p, "hugetlb");
	uint64_t n = hugetlb_n_pages();

	f->ok = n > 0;
	say(f->value, "%" PRIu64 " reserved pages of 2 MiB", n);
	if (!f->ok) {
		say(f->consequence, "mode = hugetlb falls to collapse; nothing "
				    "else needs it");
		f->kernel = "4.16";
		say(f->command, "sysctl -w vm.nr_hugepages=512");
	}
}

static void ignore_release(void *ctx _unused_, struct watched *w _unused_,
			   bool late _unused_)
{
}

static void probe_lifetime(struct probe *p)
{
	static const struct lifetime_ops ops = {.released = ignore_release};
	struct probe_fact *leases = add(p, "leases");
	struct probe_fact *inotify = add(p, "inotify");
	struct lifetime *lt = NULL;
	enum backing_lifetime mode = BACKING_LIFETIME_EXPLICIT;
	uint64_t n = read_number("/proc/sys/fs/inotify/max_user_watches", 0);

	if (!lifetime_new(&lt, &ops))
		mode = lifetime_mode(lt);
	lifetime_free(lt);
	leases->ok = mode != BACKING_LIFETIME_EXPLICIT;
	say(leases->value, "%s",
	    leases->ok ? "tell a buffer's last reference" : "refused");
	if (!leases->ok) {
		say(leases->consequence,
		    "a buffer ends when it is released or its connection "
		    "closes, and is never used again");
		say(leases->command, "sysctl -w fs.leases-enable=1");
	}
	inotify->ok = mode == BACKING_LIFETIME_EXACT && n >= WATCHES_ENOUGH;
	say(inotify->value, "%s, %" PRIu64 " watches a user",
	    mode == BACKING_LIFETIME_EXACT ? "works" : "refused", n);
	if (!inotify->ok) {
		say(inotify->consequence,
		    "buffers beyond the limit are looked at every 20 ms "
		    "instead of waking the daemon");
		say(inotify->command, "sysctl -w "
				      "fs.inotify.max_user_instances=512 "
				      "fs.inotify.max_user_watches=65536");
	}
}

static void probe_limit(struct probe *p, const char *name, int resource,
			uint64_t enough, const char *consequence,
			const char *command)
{
	struct probe_fact *f = add(p, name);
	struct rlimit limit = {0};

	(void)getrlimit((__rlimit_resource_t)resource, &limit);
	f->ok = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= enough;
	if (limit.rlim_max == RLIM_INFINITY)
		say(f->value, "unlimited");
	else
		say(f->value, "%" PRIu64, (uint64_t)limit.rlim_max);
	if (!f->ok) {
		say(f->consequence, "%s", consequence);
		say(f->command, "%s", command);
	}
}

static void probe_memory(struct probe *p)
{
	struct probe_fact *f = add(p, "memory");
	struct hostmem_reading reading, least = {.available_bytes = UINT64_MAX};
	const struct hostmem_level *level = NULL;
	struct hostmem h;

	if (hostmem_init(&h, "")) {
		f->ok = false;
		say(f->value, "/proc/meminfo cannot be read");
		say(f->consequence, "no buffer can be made");
		return;
	}
	for (unsigned int i = 0; i < h.n_levels; i++) {
		if (hostmem_read(&h, i, &reading) ||
		    reading.limit_bytes == HOSTMEM_NO_LIMIT ||
		    reading.available_bytes >= least.available_bytes)
			continue;
		least = reading;
		level = &h.level[i];
	}
	f->ok = level && least.available_bytes >= BUDGET_ENOUGH;
	say(f->value, "%" PRIu64 " MiB available, bounded by %s%.80s (%s)",
	    level ? least.available_bytes / MIB(1) : 0,
	    level && level->dir ? "memory cgroup " : "the host",
	    level && level->dir ? level->name : "", level ? least.key : "");
	if (!f->ok)
		say(f->consequence, "little room for buffers: the budget keeps "
				    "32 MiB or 5 %% free");
	if (!f->ok && level && level->dir)
		say(f->command,
		    "raise %s of that cgroup (docker run -m 1g, or "
		    "MemoryMax=1G)",
		    least.key);
	hostmem_fini(&h);
}

static void probe_overcommit(struct probe *p)
{
	struct probe_fact *f = add(p, "overcommit");
	uint64_t n = read_number("/proc/sys/vm/overcommit_memory", 0);

	f->ok = n != 2;
	say(f->value, "vm.overcommit_memory = %" PRIu64, n);
	if (!f->ok) {
		say(f->consequence, "buffers end with ENOMEM at the commit "
				    "limit, before memory is used up");
		say(f->command, "sysctl -w vm.overcommit_memory=0");
	}
}

static void probe_pressure(struct probe *p)
{
	struct probe_fact *f = add(p, "psi");
	struct pressure *pressure = NULL;
	int r = pressure_new(&pressure);

	pressure_free(pressure);
	f->ok = r == 0;
	say(f->value, "%s", r ? strerror(-r) : "the kernel tells of stalls");
	if (r) {
		say(f->consequence, "parked memory stays when the host runs "
				    "short, until a request needs it");
		f->kernel = "5.2, for ordinary users 6.4";
		say(f->command, "boot with psi=1");
	}
}

static void probe_seccomp(struct probe *p)
{
	struct probe_fact *f = add(p, "seccomp-notify");
	uint32_t action = SECCOMP_RET_USER_NOTIF;
	bool notify =
		syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
	/* Without a filter: EFAULT if the flags are known, else EINVAL. */
	bool killable = notify &&
			syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER |
					SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
				NULL) < 0 &&
			errno == EFAULT;

	f->ok = notify && killable;
	say(f->value, "%s",
	    killable ? "works"
	    : notify ? "works, but cannot outlast signals"
		     : "not available");
	if (!f->ok) {
		say(f->consequence, "%s",
		    notify ? "dmaheap-run: a program under a fast timer may "
			     "never see its allocation return"
			   : "dmaheap-run does not work");
		f->kernel = notify ? "5.19" : "5.9";
	}
}

unsigned int backing_probe(struct probe_fact facts[PROBE_FACTS_MAX],
			   uint32_t orders)
{
	struct probe p = {.facts = facts, .orders = orders};

	probe_plain(&p);
	probe_collapse(&p);
	probe_folio(&p);
	probe_hugetlb(&p);
	probe_lifetime(&p);
	probe_limit(&p, "open-files", RLIMIT_NOFILE, FDS_ENOUGH,
		    "one is needed per live or parked buffer",
		    "ulimit -Hn 65536, or LimitNOFILE=65536 in the unit");
	probe_limit(&p, "file-size", RLIMIT_FSIZE, GIB(1),
		    "larger buffers are refused",
		    "ulimit -Hf unlimited, or LimitFSIZE=infinity");
	probe_limit(&p, "memlock", RLIMIT_MEMLOCK, MEMLOCK_ENOUGH,
		    "buffers do not need it; io_uring of kernels before 5.12 "
		    "does, then the loop is epoll",
		    "ulimit -Hl 8192, or LimitMEMLOCK=8M");
	probe_memory(&p);
	probe_overcommit(&p);
	probe_pressure(&p);
	probe_seccomp(&p);
	return p.n;
}
