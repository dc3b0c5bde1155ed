/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl/facts.h"
#include "ctl/json.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

/* What a lack means and what mends it. */
struct advice {
	const char *name;
	const char *consequence;
	const char *kernel; /* the first one that can; "" for any */
	const char *command;
};

static const struct advice advices[] = {
	{"dmaheapd", "The daemon's own findings are missing here.", "",
	 "put the directory of dmaheapd into PATH"},
	{"loop",
	 "The epoll loop serves instead: a few microseconds more a request.",
	 "6.1",
	 "sysctl -w kernel.io_uring_disabled=0   (in a container: a seccomp "
	 "profile that allows io_uring)"},
	{"backing",
	 "Buffers are made of smaller pages than they could be; their "
	 "contents are the same.",
	 "6.1 for collapse, 6.11 for folio", "see folio and collapse here"},
	{"lifetime",
	 "A buffer's end is noticed late, or only with its connection's, and "
	 "then memory is not recycled.",
	 "", "see inotify here; leases need the daemon to own its memfds"},
	{"budget", "Few or no buffers fit.", "",
	 "free memory, raise the cgroup's limit, or set [backing] budget"},
	{"open-files", "Each live buffer takes a descriptor of the daemon's.",
	 "", "ulimit -Hn 20000   (systemd: LimitNOFILE=20000)"},
	{"folio",
	 "Buffers do not get pages of the orders that the heap decides; "
	 "collapse or plain serves instead.",
	 "6.11",
	 "for k in 64 1024 2048; do echo advise >/sys/kernel/mm/"
	 "transparent_hugepage/hugepages-${k}kB/shmem_enabled; done   (or "
	 "[backing] manage_thp = yes in a daemon of root's)"},
	{"collapse",
	 "Pages of 2 MiB cannot be made without a switch; first touch of a "
	 "buffer costs 20 to 40 times as much.",
	 "6.1", "a newer kernel with CONFIG_TRANSPARENT_HUGEPAGE=y"},
	{"hugetlb", "[backing] mode = hugetlb falls back to the next backing.",
	 "3.17", "sysctl -w vm.nr_hugepages=128"},
	{"inotify",
	 "The end of a buffer is found by a sweep every 20 ms instead of at "
	 "once.",
	 "",
	 "sysctl -w fs.inotify.max_user_instances=512 "
	 "fs.inotify.max_user_watches=524288"},
	{"memlock", "io_uring may be refused; the epoll loop serves instead.",
	 "5.12 does not need it", "ulimit -Hl 65536"},
	{"cgroup",
	 "Buffers count against this limit, and neighbours in the cgroup can "
	 "take the memory first; requests beyond it get ENOMEM.",
	 "",
	 "raise memory.max of the cgroup, or set [backing] budget below "
	 "it"},
	{"overcommit",
	 "Requests fail with ENOMEM as soon as the commit limit is reached, "
	 "also with free memory left.",
	 "", "sysctl -w vm.overcommit_memory=0"},
	{"psi", "The pools do not shrink when the host runs short of memory.",
	 "4.20, for ordinary users 6.5",
	 "boot with psi=1   (in a container: make /proc/pressure visible)"},
	{"seccomp-notify", "dmaheap-run cannot work; link libdmaheap instead.",
	 "5.9",
	 "a kernel with CONFIG_SECCOMP_FILTER=y   (in a container: allow the "
	 "seccomp call)"},
};

static const struct advice *advice_of(const struct fact *f)
{
	static const struct advice none = {"", "", "", ""};

	for (size_t i = 0; !f->ok && i < ARRAY_SIZE(advices); i++)
		if (!strcmp(advices[i].name, f->name))
			return &advices[i];
	return &none;
}

static json_t *to_json(const struct facts *facts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < facts->n; i++) {
		const struct fact *f = &facts->fact[i];
		const struct advice *a = advice_of(f);

		json_array_append_new(
			array,
			json_pack("{s:o, s:b, s:o, s:o, s:s, s:s, s:s}", "name",
				  json_text(f->name), "ok", f->ok, "value",
				  json_text(f->value), "reason",
				  json_text(f->reason), "consequence",
				  a->consequence, "kernel", a->kernel,
				  "command", a->command));
	}
	return array;
}

static void show_lack(const struct fact *f)
{
	const struct advice *a = advice_of(f);

	printf("\n%s: %s%s%s\n", f->name, ctl_printable(f->value),
	       *f->reason ? ": " : "", f->reason);
	if (*a->consequence)
		printf("  consequence  %s\n", a->consequence);
	if (*a->kernel)
		printf("  kernel       %s\n", a->kernel);
	if (*a->command)
		printf("  command      %s\n", a->command);
}

static void show(const struct ctl *ctl, const struct facts *facts)
{
	static const char *const headings[] = {"WHAT", "STATE", "VALUE", NULL};
	struct table *t = table_new(headings);

	for (size_t i = 0; i < facts->n; i++) {
		const struct fact *f = &facts->fact[i];

		table_cell(t, "%s", f->name);
		table_cell(t, "%s", f->ok ? "ok" : "lacking");
		table_cell(t, "%s", f->value);
		if (!f->ok)
			table_mark_row(t);
	}
	table_print(t, ctl);
	table_free(t);
	for (size_t i = 0; i < facts->n; i++)
		if (!facts->fact[i].ok)
			show_lack(&facts->fact[i]);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static struct facts facts;

	(void)argc;
	(void)argv;
	facts_add_probe(&facts);
	facts_add_host(&facts);
	if (ctl->json)
		return json_show(to_json(&facts));
	show(ctl, &facts);
	return CTL_OK;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.arguments = "",
	.summary = "say what this machine lacks, and what mends it",
	.details = "Needs no daemon: it runs \"dmaheapd --probe\" and looks "
		   "around itself. A lack is not\na failure: the daemon runs "
		   "without everything that is listed here.",
	.run = run,
};
