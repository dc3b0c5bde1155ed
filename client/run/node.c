/* SPDX-License-Identifier: MIT */
#include "run/node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "run/target.h"
#include "run/util.h"

#define HEAP_MEMFD_PREFIX "dma_heap:"
#define SYNC_FILL_BYTES   4096u

/*
 * The model: the program sees the directory's descriptors, never its path. The
 * memfds live as long as the node.
 */
struct node {
	char directory[WORKDIR_PATH_BYTES + 16]; /* "": not made */
	int sync_read_fd;
	int sync_write_fd;
	ino_t sync_ino;
	struct timespec created;
	uid_t uid; /* the heaps' owner: who started the run */
	gid_t gid;
	size_t n_heaps;
	struct node_heap heap[NODE_HEAPS_MAX];
};

static bool name_is_usable(const char *name)
{
	return name[0] && strcmp(name, ".") && strcmp(name, "..") &&
	       !strchr(name, '/');
}

static int memfd_of_heap(struct node_heap *heap)
{
	_cleanup_(fd_closep) int fd = -1;
	char name[64];
	struct stat st;

	(void)snprintf(name, sizeof(name), HEAP_MEMFD_PREFIX "%s", heap->name);
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fchmod(fd, 0600) || fstat(fd, &st) ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	heap->dev = st.st_dev;
	heap->ino = st.st_ino;
	heap->memfd = TAKE_FD(fd);
	return 0;
}

/*
 * The entry that readdir() shows. An overlay filesystem refuses devices 0:0;
 * there a plain file must do, and only d_type tells the difference.
 */
static int make_entry(const struct node *node, struct node_heap *heap,
		      bool as_device)
{
	char path[sizeof(((struct node *)0)->directory) +
		  DMAHEAP_NAME_MAX_BYTES];
	struct stat st;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", node->directory,
		       heap->name);
	r = mknod(path, (as_device ? S_IFCHR : S_IFREG) | 0600, 0);
	if ((r && errno != EEXIST) || lstat(path, &st))
		return -errno;
	heap->entry_dev = st.st_dev;
	heap->entry_ino = st.st_ino;
	return 0;
}

void node_remove_directory(const struct node *node)
{
	char path[sizeof(((struct node *)0)->directory) +
		  DMAHEAP_NAME_MAX_BYTES];

	if (!node->directory[0])
		return;
	for (size_t i = 0; i < node->n_heaps; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", node->directory,
			       node->heap[i].name);
		(void)unlink(path);
	}
	(void)rmdir(node->directory);
}

static int make_directory(struct node *node, const struct workdir *workdir)
{
	int r = 0;

	(void)snprintf(node->directory, sizeof(node->directory), "%s/dma_heap",
		       workdir->path);
	if (mkdir(node->directory, 0755)) {
		r = -errno;
		node->directory[0] = '\0';
		return r;
	}
	/* Whatever the umask. */
	if (chmod(node->directory, 0755))
		return -errno;
	for (size_t i = 0; !r && i < node->n_heaps; i++)
		r = make_entry(node, &node->heap[i], workdir->has_devices);
	return r;
}

static int make_sync_pipe(struct node *node)
{
	static const char fill[SYNC_FILL_BYTES];
	int fds[2];
	struct stat st;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	node->sync_read_fd = fds[0];
	node->sync_write_fd = fds[1];
	if (fstat(fds[0], &st) ||
	    write(fds[1], fill, sizeof(fill)) != sizeof(fill))
		return -errno;
	node->sync_ino = st.st_ino;
	return 0;
}

static int add_heaps(struct node *node, char (*names)[DMAHEAP_NAME_MAX_BYTES],
		     size_t n_names, char ret_why[256])
{
	int r;

	for (size_t i = 0; i < n_names; i++) {
		struct node_heap *heap = &node->heap[node->n_heaps];

		if (!name_is_usable(names[i]) ||
		    node->n_heaps == NODE_HEAPS_MAX) {
			(void)snprintf(ret_why, 256,
				       "heap name '%s': not a file name, or "
				       "more than %u heaps",
				       names[i], NODE_HEAPS_MAX);
			return -EINVAL;
		}
		(void)snprintf(heap->name, sizeof(heap->name), "%s", names[i]);
		heap->minor = (unsigned int)node->n_heaps++;
		r = memfd_of_heap(heap);
		if (r) {
			(void)snprintf(ret_why, 256, "memfd_create: %s",
				       strerror(-r));
			return r;
		}
	}
	return 0;
}

int node_new(struct node **ret, const struct workdir *workdir,
	     char (*names)[DMAHEAP_NAME_MAX_BYTES], size_t n_names,
	     char ret_why[256])
{
	struct node *node = calloc(1, sizeof(*node));
	int r;

	if (!node) {
		(void)snprintf(ret_why, 256, "out of memory");
		return -ENOMEM;
	}
	node->sync_read_fd = -1;
	node->sync_write_fd = -1;
	for (size_t i = 0; i < NODE_HEAPS_MAX; i++)
		node->heap[i].memfd = -1;
	(void)clock_gettime(CLOCK_REALTIME, &node->created);
	node->uid = getuid();
	node->gid = getgid();

	r = add_heaps(node, names, n_names, ret_why);
	if (r == 0) {
		r = make_sync_pipe(node);
		if (r)
			(void)snprintf(ret_why, 256, "pipe: %s", strerror(-r));
	}
	if (r == 0) {
		r = make_directory(node, workdir);
		if (r)
			(void)snprintf(ret_why, 256, "%s: %s", node->directory,
				       strerror(-r));
	}
	if (r) {
		node_free(node);
		return r;
	}
	*ret = node;
	return 0;
}

struct node *node_free(struct node *node)
{
	if (!node)
		return NULL;
	node_remove_directory(node);
	for (size_t i = 0; i < node->n_heaps; i++)
		fd_closep(&node->heap[i].memfd);
	fd_closep(&node->sync_read_fd);
	fd_closep(&node->sync_write_fd);
	free(node);
	return NULL;
}

const struct node_heap *node_find(const struct node *node, const char *name,
				  size_t length)
{
	for (size_t i = 0; i < node->n_heaps; i++)
		if (strlen(node->heap[i].name) == length &&
		    memcmp(node->heap[i].name, name, length) == 0)
			return &node->heap[i];
	return NULL;
}

const struct node_heap *node_heap_at(const struct node *node,
				     unsigned int minor)
{
	return minor < node->n_heaps ? &node->heap[minor] : NULL;
}

const char *node_directory(const struct node *node)
{
	return node->directory;
}

static int reopen(int fd, int flags)
{
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, flags | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int node_open_heap(const struct node_heap *heap, int flags)
{
	return reopen(heap->memfd, flags);
}

int node_open_directory(const struct node *node, int flags)
{
	int fd = open(node->directory, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int node_open_sync_file(const struct node *node)
{
	return reopen(node->sync_read_fd, O_RDONLY);
}

static void identify_heap(const struct node *node, struct node_object *o)
{
	for (size_t i = 0; i < node->n_heaps; i++)
		if (o->st.st_ino == node->heap[i].ino &&
		    o->st.st_dev == node->heap[i].dev) {
			o->kind = NODE_HEAP;
			o->heap = &node->heap[i];
		}
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * An O_PATH fd refuses what its object would do. The link's own mode shows the
 * rights to read and write; with neither, the flags tell.
 */
static bool is_path_only(pid_t tid, int fd)
{
	unsigned int flags;
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, fd);
	return lstat(path, &st) == 0 && !(st.st_mode & 0600) &&
	       target_fd_flags(tid, fd, &flags) == 0 && (flags & O_PATH);
}

static void identify_memfd(const struct node *node, pid_t tid, int fd,
			   struct node_object *o)
{
	bool is_buffer = starts_with(o->link, NODE_BUFFER_PREFIX);

	if (target_fd_stat(tid, fd, &o->st))
		return;
	if (is_buffer)
		o->kind = NODE_BUFFER;
	else
		identify_heap(node, o);
	if (o->kind != NODE_OTHER && is_path_only(tid, fd))
		o->kind = is_buffer ? NODE_BUFFER_PATH : NODE_HEAP_PATH;
}

void node_identify(const struct node *node, pid_t tid, int fd,
		   struct node_object *ret)
{
	ret->kind = NODE_OTHER;
	ret->heap = NULL;
	ret->link[0] = '\0';
	if (fd < 0 || target_fd_link(tid, fd, ret->link, sizeof(ret->link)) < 0)
		return;
	if (starts_with(ret->link, NODE_BUFFER_PREFIX) ||
	    starts_with(ret->link, "/memfd:" HEAP_MEMFD_PREFIX)) {
		identify_memfd(node, tid, fd, ret);
	} else if (strcmp(ret->link, node->directory) == 0) {
		ret->kind = NODE_DIRECTORY;
	} else if (starts_with(ret->link, "pipe:[")) {
		if (strtoull(ret->link + strlen("pipe:["), NULL, 10) ==
		    node->sync_ino)
			ret->kind = NODE_SYNC_FILE;
	} else if (starts_with(ret->link, "anon_inode:sync_file")) {
		ret->kind = NODE_FOREIGN_SYNC_FILE;
	}
}

static void stat_common(const struct timespec *created, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_blksize = 4096;
	st->st_atim = *created;
	st->st_mtim = *created;
	st->st_ctim = *created;
}

void node_stat_heap(const struct node *node, const struct node_heap *heap,
		    struct stat *ret)
{
	stat_common(&node->created, ret);
	ret->st_uid = node->uid;
	ret->st_gid = node->gid;
	ret->st_dev = heap->entry_dev;
	ret->st_ino = heap->entry_ino;
	ret->st_mode = S_IFCHR | 0600;
	ret->st_nlink = 1;
	ret->st_rdev = makedev(NODE_MAJOR, heap->minor);
}

void node_stat_directory(const struct node *node, struct stat *ret)
{
	struct stat real;

	stat_common(&node->created, ret);
	ret->st_mode = S_IFDIR | 0755;
	ret->st_nlink = 2;
	ret->st_size = (off_t)(20 * (node->n_heaps + 2));
	if (stat(node->directory, &real) == 0) {
		ret->st_dev = real.st_dev;
		ret->st_ino = real.st_ino;
	}
}

bool node_may_use(const struct node *node, pid_t tid)
{
	long uid;

	/* The file system's uid: the fourth. Root's rights reach everywhere. */
	if (target_status_field(tid, "Uid", 3, &uid))
		return true;
	return uid == 0 || (uid_t)uid == node->uid;
}
