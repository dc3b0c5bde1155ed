/* SPDX-License-Identifier: MIT */

/*
 * like-docker: runs a command in surroundings such as a container engine makes
 * by default, so that what works only on a friendly host is found at home.
 *
 * As root: a mount namespace with /sys and /proc/sys read-only, an empty
 * /proc/pressure and a small /dev/shm; the capabilities of a default container
 * and no others. Always: io_uring refused, inotify instances "used up", system
 * calls refused that the default profile of an engine refuses.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>
#include <sys/capability.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "like-docker: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* What an engine leaves to root in a container. */
static const cap_value_t kept_caps[] = {
	CAP_CHOWN,      CAP_DAC_OVERRIDE, CAP_FSETID, CAP_FOWNER,
	CAP_MKNOD,      CAP_NET_RAW,      CAP_SETGID, CAP_SETUID,
	CAP_SETFCAP,    CAP_SETPCAP,      CAP_KILL,   CAP_NET_BIND_SERVICE,
	CAP_SYS_CHROOT, CAP_AUDIT_WRITE,
};

static void read_only(const char *path)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		die(path);
	if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attr,
		    sizeof(attr)) < 0)
		die(path);
}

/*
 * An ordinary user must reach the source tree even where a directory above it
 * is root's alone: an empty one that anyone may enter takes that one's place.
 */
static void make_reachable(const char *tree)
{
	static const char holding[] = "/mnt";
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s", tree);
	for (char *slash = strchr(path + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (stat(path, &st) < 0)
			die(path);
		if (st.st_mode & S_IXOTH) {
			*slash = '/';
			continue;
		}
		if (mount(tree, holding, NULL, MS_BIND | MS_REC, NULL) < 0 ||
		    mount("tmpfs", path, "tmpfs", 0, "mode=0755") < 0)
			die(path);
		for (*slash = '/'; (slash = strchr(slash + 1, '/'));
		     *slash = '/') {
			*slash = '\0';
			if (mkdir(path, 0755) < 0)
				die(path);
		}
		if (mkdir(tree, 0755) < 0 ||
		    mount(holding, tree, NULL, MS_MOVE, NULL) < 0)
			die(tree);
		return;
	}
}

static void change_mounts(const char *tree)
{
	if (unshare(CLONE_NEWNS) < 0)
		die("unshare");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("mount /");
	make_reachable(tree);
	read_only("/sys");
	read_only("/proc/sys");
	if (access("/proc/pressure", F_OK) == 0 &&
	    mount("tmpfs", "/proc/pressure", "tmpfs", MS_RDONLY, NULL) < 0)
		die("/proc/pressure");
	if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,
		  "size=1m,mode=1777") < 0)
		die("/dev/shm");
}

static void refuse(scmp_filter_ctx ctx, int err, const char *const *names)
{
	for (; *names; names++) {
		int nr = seccomp_syscall_resolve_name(*names);

		if (nr == __NR_SCMP_ERROR)
			continue; /* this architecture has none */
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)err), nr,
				     0) < 0)
			die(*names);
	}
}

static void refuse_calls(int io_uring_errno, bool keep_inotify)
{
	static const char *const io_uring[] = {"io_uring_setup",
					       "io_uring_enter",
					       "io_uring_register", NULL};
	static const char *const inotify[] = {"inotify_init", "inotify_init1",
					      NULL};
	static const char *const privileged[] =
		{"mount",           "umount2",
		 "pivot_root",      "unshare",
		 "setns",           "bpf",
		 "perf_event_open", "kexec_load",
		 "init_module",     "delete_module",
		 "swapon",          "swapoff",
		 "reboot",          "userfaultfd",
		 "keyctl",          "add_key",
		 "request_key",     "open_by_handle_at",
		 "move_mount",      "open_tree",
		 "fsopen",          NULL};
	static const char *const unknown[] = {"clone3", NULL};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (!ctx)
		die("seccomp_init");
	refuse(ctx, io_uring_errno, io_uring);
	if (!keep_inotify)
		refuse(ctx, EMFILE, inotify);
	refuse(ctx, EPERM, privileged);
	refuse(ctx, ENOSYS, unknown);
	if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
			     SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER,
					CLONE_NEWUSER)) < 0)
		die("clone");
	/* Root needs no no_new_privs for a filter, and a container has none. */
	if (geteuid() == 0 && seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0) < 0)
		die("SCMP_FLTATR_CTL_NNP");
	if (seccomp_load(ctx) < 0)
		die("seccomp_load");
	seccomp_release(ctx);
}

static bool is_kept(cap_value_t cap)
{
	for (size_t i = 0; i < sizeof(kept_caps) / sizeof(*kept_caps); i++)
		if (kept_caps[i] == cap)
			return true;
	return false;
}

static void drop_caps(void)
{
	cap_t caps = cap_init();
	int n = sizeof(kept_caps) / sizeof(*kept_caps);

	for (cap_value_t cap = 0; cap <= cap_max_bits() - 1; cap++)
		if (!is_kept(cap) && cap_get_bound(cap) == 1 &&
		    cap_drop_bound(cap) < 0)
			die("cap_drop_bound");
	if (!caps || cap_set_flag(caps, CAP_PERMITTED, n, kept_caps, CAP_SET) ||
	    cap_set_flag(caps, CAP_EFFECTIVE, n, kept_caps, CAP_SET) ||
	    cap_set_proc(caps) < 0)
		die("cap_set_proc");
	cap_free(caps);
}

static void become(unsigned int id)
{
	if (setgroups(0, NULL) < 0 || setgid(id) < 0 || setuid(id) < 0)
		die("setuid");
}

static const char usage_text[] =
	"usage: like-docker [--uid N] [--io-uring eperm|enosys] "
	"[--keep-inotify]\n"
	"                   [--tree DIR] [--] COMMAND ARGS...\n"
	"Runs COMMAND as in a container of a default container engine.\n"
	"  --uid N         as this user and group (root only)\n"
	"  --io-uring E    how io_uring is refused (eperm)\n"
	"  --keep-inotify  leave inotify instances\n"
	"  --tree DIR      keep this directory reachable (the current one)\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"uid", required_argument, NULL, 'u'},
		{"io-uring", required_argument, NULL, 'i'},
		{"keep-inotify", no_argument, NULL, 'k'},
		{"tree", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool keep_inotify = false;
	int io_uring_errno = EPERM, opt;
	char tree[4096], *end;
	unsigned long uid = 0;

	if (!getcwd(tree, sizeof(tree)))
		die("getcwd");
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt == 'u') {
			uid = strtoul(optarg, &end, 10);
			if (*end || uid == 0 || uid > 0xfffffffe) {
				fputs(usage_text, stderr);
				return 2;
			}
		} else if (opt == 'i') {
			io_uring_errno =
				strcmp(optarg, "enosys") ? EPERM : ENOSYS;
		} else if (opt == 'k') {
			keep_inotify = true;
		} else if (opt == 't') {
			if (!realpath(optarg, tree))
				die(optarg);
		} else {
			fputs(usage_text, opt == 'h' ? stdout : stderr);
			return opt == 'h' ? 0 : 2;
		}
	}
	if (optind == argc) {
		fputs(usage_text, stderr);
		return 2;
	}

	if (geteuid() == 0)
		change_mounts(tree);
	refuse_calls(io_uring_errno, keep_inotify);
	if (geteuid() == 0) {
		drop_caps();
		if (chdir(tree) < 0)
			die(tree);
		if (uid)
			become((unsigned int)uid);
	}
	execvp(argv[optind], argv + optind);
	die(argv[optind]);
}
