/* SPDX-License-Identifier: MIT */
#include "run/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/target.h"
#include "run/util.h"

#define LINKS_MAX 40u /* as the kernel */

/*
 * The model: "done" is an absolute path without links, as the caller sees it;
 * "rest" is what remains. Each component moves from one to the other; a link
 * puts its target in front of the rest.
 */
struct walk {
	const struct node *node;
	pid_t tid;
	bool no_follow;
	unsigned int n_links;
	char done[PATH_MAX];
	char rest[2 * PATH_MAX];
	bool was_inside; /* the kernel cannot follow this path */
	struct resolved *result;
};

static bool is_number(const char *text)
{
	return text[0] && strspn(text, "0123456789") == strlen(text);
}

bool resolve_is_interesting(const struct node *node, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	return is_number(base) || node_find(node, base, strlen(base)) ||
	       strstr(path, "dma_heap");
}

bool resolve_is_link(const struct node *node, pid_t tid, int dirfd,
		     const char *path)
{
	char full[PATH_MAX + 64], target[PATH_MAX];
	ssize_t length;
	int n;

	if (path[0] == '/')
		n = snprintf(full, sizeof(full), "/proc/%d/root%s", (int)tid,
			     path);
	else if (dirfd == AT_FDCWD)
		n = snprintf(full, sizeof(full), "/proc/%d/cwd/%s", (int)tid,
			     path);
	else
		n = snprintf(full, sizeof(full), "/proc/%d/fd/%d/%s", (int)tid,
			     dirfd, path);
	if (n < 0 || (size_t)n >= sizeof(full))
		return false;
	length = readlink(full, target, sizeof(target) - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	return resolve_is_interesting(node, target);
}

/*
 * Where a relative path begins: the link's text is as the supervisor sees it,
 * so a root directory of the caller's own is taken off its front.
 */
static bool start_at_link(struct walk *w, const char *text)
{
	char root[PATH_MAX];
	size_t length;

	if (strcmp(text, node_directory(w->node)) == 0)
		text = NODE_PATH;
	else if (target_read_link(w->tid, "root", root, sizeof(root)) > 0 &&
		 strcmp(root, "/")) {
		length = strlen(root);
		if (strncmp(text, root, length) == 0 &&
		    (text[length] == '/' || !text[length]))
			text += length;
	}
	if (text[0] && text[0] != '/')
		return false;
	(void)snprintf(w->done, sizeof(w->done), "%s",
		       strcmp(text, "/") ? text : "");
	return true;
}

static bool start(struct walk *w, int dirfd, const char *path)
{
	char text[PATH_MAX];
	int n;

	(void)snprintf(w->rest, sizeof(w->rest), "%s", path);
	if (path[0] == '/')
		return true;
	if (dirfd == AT_FDCWD)
		n = target_read_link(w->tid, "cwd", text, sizeof(text));
	else
		n = target_fd_link(w->tid, dirfd, text, sizeof(text));
	return n > 0 && start_at_link(w, text);
}

/* Cuts the first component off the rest. Return: false when there is none. */
static bool next_component(struct walk *w, char component[NAME_MAX + 1])
{
	size_t skip = strspn(w->rest, "/");
	size_t length = strcspn(w->rest + skip, "/");

	if (length == 0 || length > NAME_MAX)
		return false;
	memcpy(component, w->rest + skip, length);
	component[length] = '\0';
	memmove(w->rest, w->rest + skip + length,
		strlen(w->rest + skip + length) + 1);
	return true;
}

static void go_up(char *done)
{
	char *slash = strrchr(done, '/');

	if (slash)
		*slash = '\0';
}

/* "/proc/<pid>/fd" or "/proc/<pid>/task/<tid>/fd", or with "fdinfo". */
static bool is_fd_directory(const char *done, const char *leaf, pid_t *ret_pid)
{
	int pid, tid, used = 0;

	if (sscanf(done, "/proc/%d/task/%d/%n", &pid, &tid, &used) == 2 &&
	    used > 0)
		pid = tid;
	else if (sscanf(done, "/proc/%d/%n", &pid, &used) != 1 || used == 0)
		return false;
	*ret_pid = pid;
	return strcmp(done + used, leaf) == 0;
}

enum step {
	STEP_NOT_MINE, /* nothing done */
	STEP_DOWN,     /* the walk goes on from a new place */
	STEP_END,      /* the result is set */
};

/* A number in a directory of descriptors: their links lead anywhere. */
static enum step step_fd(struct walk *w, const char *component)
{
	enum place place = PLACE_FD;
	char text[PATH_MAX];
	pid_t pid;
	int fd;

	if (!is_number(component))
		return STEP_NOT_MINE;
	if (is_fd_directory(w->done, "fdinfo", &pid))
		place = PLACE_FDINFO;
	else if (!is_fd_directory(w->done, "fd", &pid))
		return STEP_NOT_MINE;
	fd = atoi(component);
	if (!w->rest[strspn(w->rest, "/")]) {
		w->result->place = place;
		w->result->pid = pid;
		w->result->fd = fd;
		return STEP_END;
	}
	/* A directory's descriptor in the middle of a path. */
	if (place == PLACE_FD &&
	    target_fd_link(pid, fd, text, sizeof(text)) > 0 &&
	    start_at_link(w, text))
		return STEP_DOWN;
	return STEP_END;
}

static void step_heap(struct walk *w, const char *component)
{
	const struct node_heap *heap =
		node_find(w->node, component, strlen(component));

	if (!heap)
		w->result->place = PLACE_MISSING;
	else if (w->rest[0])
		w->result->place = PLACE_NOT_A_DIRECTORY;
	else
		w->result->place = PLACE_HEAP;
	w->result->heap = heap;
}

/* /proc/self is another one for the supervisor than for the caller. */
static void translate_self(const struct walk *w, char component[NAME_MAX + 1])
{
	if (strcmp(w->done, "/proc"))
		return;
	if (strcmp(component, "self") == 0)
		(void)snprintf(component, NAME_MAX + 1, "%d",
			       (int)target_tgid(w->tid));
	else if (strcmp(component, "thread-self") == 0)
		(void)snprintf(component, NAME_MAX + 1, "%d/task/%d",
			       (int)target_tgid(w->tid), (int)w->tid);
}

/* Puts a link's target in front of the rest. Return: false if too long. */
static bool follow(struct walk *w, const char *target)
{
	char rest[2 * PATH_MAX];
	int n;

	n = snprintf(rest, sizeof(rest), "%s%s", target, w->rest);
	if (n < 0 || (size_t)n >= sizeof(rest) || ++w->n_links > LINKS_MAX)
		return false;
	memcpy(w->rest, rest, (size_t)n + 1);
	if (target[0] == '/')
		w->done[0] = '\0';
	return true;
}

/*
 * A component of the real file system: follow it if it is a link, else go down.
 * Return: false when the walk ends elsewhere.
 */
static bool step_real(struct walk *w, const char *component)
{
	char here[PATH_MAX + NAME_MAX + 2], target[PATH_MAX];
	int n;

	n = snprintf(here, sizeof(here), "%s/%s", w->done, component);
	if (n < 0 || n >= PATH_MAX)
		return false;
	if (strcmp(here, NODE_PATH)) {
		char link_path[sizeof(here) + 32];
		ssize_t length;

		(void)snprintf(link_path, sizeof(link_path), "/proc/%d/root%s",
			       (int)w->tid, here);
		length = readlink(link_path, target, sizeof(target) - 1);
		if (length >= 0) {
			target[length] = '\0';
			if (w->no_follow && !w->rest[0])
				return false;
			return follow(w, target);
		}
		if (errno != EINVAL)
			return false;
	}
	memcpy(w->done, here, (size_t)n + 1);
	return true;
}

static void walk(struct walk *w)
{
	char component[NAME_MAX + 1];
	enum step step;

	while (next_component(w, component)) {
		if (strcmp(component, ".") == 0)
			continue;
		if (strcmp(component, "..") == 0) {
			if (strcmp(w->done, NODE_PATH) == 0)
				w->was_inside = true;
			go_up(w->done);
			continue;
		}
		if (strcmp(w->done, NODE_PATH) == 0) {
			step_heap(w, component);
			return;
		}
		translate_self(w, component);
		step = step_fd(w, component);
		if (step == STEP_END ||
		    (step == STEP_NOT_MINE && !step_real(w, component)))
			return;
	}
	if (strcmp(w->done, NODE_PATH) == 0) {
		w->result->place = PLACE_DIRECTORY;
	} else if (w->was_inside &&
		   snprintf(w->result->outside, PATH_MAX, "/proc/%d/root%s",
			    (int)w->tid, w->done) < PATH_MAX) {
		w->result->place = PLACE_OUTSIDE;
	}
}

void resolve(const struct node *node, pid_t tid, int dirfd, const char *path,
	     bool no_follow, struct resolved *ret)
{
	struct walk w;

	ret->place = PLACE_ELSEWHERE;
	w.node = node;
	w.tid = tid;
	w.no_follow = no_follow;
	w.n_links = 0;
	w.was_inside = false;
	w.done[0] = '\0';
	w.rest[0] = '\0';
	w.result = ret;
	if (strlen(path) < PATH_MAX && start(&w, dirfd, path))
		walk(&w);
}
