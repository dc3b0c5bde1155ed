/* SPDX-License-Identifier: MIT */
#include "run/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "run/util.h"

#define HANDLES_MAX 4096u

/*
 * The model: idle[] is a stack of the handles that nobody uses now. When the
 * daemon's process ends the generation rises: handles of an older one are
 * closed instead of used, since the library would wait for a daemon that comes
 * back, and the program waits with it.
 */
struct source {
	pthread_mutex_t lock;
	pthread_cond_t returned;
	char *socket_path; /* that the first handle found */
	unsigned int max_handles;
	unsigned int n_handles; /* in use and idle */
	unsigned int n_idle;
	unsigned int generation;
	bool dead; /* its process ended, and no other has answered since */
	bool lost; /* said so */
	struct dmaheap *idle[HANDLES_MAX];
};

/* A handle in use. */
struct loan {
	struct dmaheap *handle;
	unsigned int generation;
};

int source_new(struct source **ret, const char *socket_path,
	       unsigned int max_handles)
{
	struct source *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	(void)pthread_mutex_init(&source->lock, NULL);
	(void)pthread_cond_init(&source->returned, NULL);
	source->max_handles =
		max_handles < HANDLES_MAX ? max_handles : HANDLES_MAX;
	r = dmaheap_connect(&source->idle[0], socket_path);
	if (r == 0) {
		source->n_handles = source->n_idle = 1;
		source->socket_path =
			strdup(dmaheap_socket_path(source->idle[0]));
		r = source->socket_path ? 0 : -ENOMEM;
	}
	if (r) {
		source_free(source);
		return r;
	}
	*ret = source;
	return 0;
}

const char *source_socket_path(const struct source *source)
{
	return source->socket_path;
}

static void close_idle(struct source *source)
{
	while (source->n_idle) {
		dmaheap_close(source->idle[--source->n_idle]);
		source->n_handles--;
	}
}

struct source *source_free(struct source *source)
{
	if (!source)
		return NULL;
	close_idle(source);
	(void)pthread_cond_destroy(&source->returned);
	(void)pthread_mutex_destroy(&source->lock);
	free(source->socket_path);
	free(source);
	return NULL;
}

static void give_back(struct source *source, struct loan *loan)
{
	(void)pthread_mutex_lock(&source->lock);
	if (loan->generation == source->generation) {
		source->idle[source->n_idle++] = loan->handle;
		loan->handle = NULL;
	} else {
		source->n_handles--;
	}
	(void)pthread_cond_signal(&source->returned);
	(void)pthread_mutex_unlock(&source->lock);
	dmaheap_close(loan->handle);
}

/*
 * Connects anew, without the lock. When that is refused while others are in
 * use, the limit is what there is already: the caller waits for one of them.
 */
static int connect_another(struct source *source, struct loan *loan)
{
	int r;

	source->n_handles++;
	(void)pthread_mutex_unlock(&source->lock);
	r = dmaheap_connect(&loan->handle, source->socket_path);
	(void)pthread_mutex_lock(&source->lock);
	if (r == 0) {
		source->dead = false;
		return 0;
	}
	source->n_handles--;
	if (source->n_handles == 0 || source->dead)
		return r;
	source->max_handles = source->n_handles;
	return -EAGAIN;
}

static int take(struct source *source, struct loan *loan)
{
	int r = -EAGAIN;

	loan->handle = NULL;
	(void)pthread_mutex_lock(&source->lock);
	while (r == -EAGAIN) {
		if (source->n_idle) {
			loan->handle = source->idle[--source->n_idle];
			r = 0;
		} else if (source->dead ||
			   source->n_handles < source->max_handles) {
			r = connect_another(source, loan);
		} else {
			(void)pthread_cond_wait(&source->returned,
						&source->lock);
		}
	}
	loan->generation = source->generation;
	(void)pthread_mutex_unlock(&source->lock);
	return r;
}

static void tell_loss(struct source *source, bool lost)
{
	bool changed;

	(void)pthread_mutex_lock(&source->lock);
	changed = source->lost != lost;
	source->lost = lost;
	(void)pthread_mutex_unlock(&source->lock);
	if (changed && lost)
		run_message("the daemon is gone: allocations fail with ENOMEM "
			    "until it is back");
	else if (changed)
		run_message("the daemon is back");
}

int source_daemon_pid(struct source *source)
{
	struct dmaheap_hello_reply hello;
	struct loan loan;
	int r;

	r = take(source, &loan);
	if (r)
		return r;
	r = dmaheap_hello(loan.handle, &hello);
	give_back(source, &loan);
	return r ? r : hello.daemon_pid;
}

void source_daemon_died(struct source *source)
{
	(void)pthread_mutex_lock(&source->lock);
	source->dead = true;
	source->generation++;
	close_idle(source);
	(void)pthread_mutex_unlock(&source->lock);
	tell_loss(source, true);
}

static size_t add_name(char (*names)[DMAHEAP_NAME_MAX_BYTES], size_t n,
		       size_t capacity, const char *name, size_t length)
{
	if (length == 0 || length >= DMAHEAP_NAME_MAX_BYTES || n == capacity)
		return n;
	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) == length &&
		    memcmp(names[i], name, length) == 0)
			return n;
	memcpy(names[n], name, length);
	names[n][length] = '\0';
	return n + 1;
}

static size_t add_aliases(char (*names)[DMAHEAP_NAME_MAX_BYTES], size_t n,
			  size_t capacity, const char *aliases, size_t size)
{
	const char *end = memchr(aliases, '\0', size);
	const char *stop = end ? end : aliases + size;

	while (aliases < stop) {
		const char *space = memchr(aliases, ' ', stop - aliases);
		const char *last = space ? space : stop;

		n = add_name(names, n, capacity, aliases, last - aliases);
		aliases = last + 1;
	}
	return n;
}

int source_heaps(struct source *source,
		 char (*ret_names)[DMAHEAP_NAME_MAX_BYTES], size_t capacity)
{
	static _Alignas(8) char reply[DMAHEAP_MESSAGE_MAX_BYTES];
	struct dmaheap_message msg = {
		.opcode = DMAHEAP_OP_HEAPS,
		.reply = reply,
		.reply_capacity_bytes = sizeof(reply),
	};
	const struct dmaheap_records_reply *head = (const void *)reply;
	const char *records = reply + sizeof(*head);
	struct loan loan;
	size_t n = 0, n_records;
	int r;

	r = take(source, &loan);
	if (r)
		return r;
	r = dmaheap_call(loan.handle, &msg);
	give_back(source, &loan);
	if (r)
		return r;
	if (msg.reply_bytes < sizeof(*head) ||
	    head->record_bytes < sizeof(struct dmaheap_heap_record))
		return -EPROTO;
	n_records = (msg.reply_bytes - sizeof(*head)) / head->record_bytes;
	if (n_records > head->n_records)
		n_records = head->n_records;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n_records; i++) {
			const struct dmaheap_heap_record *heap =
				(const void *)(records +
					       i * head->record_bytes);

			if (pass == 0)
				n = add_name(ret_names, n, capacity, heap->name,
					     strnlen(heap->name,
						     sizeof(heap->name)));
			else
				n = add_aliases(ret_names, n, capacity,
						heap->aliases,
						sizeof(heap->aliases));
		}
	return (int)n;
}

/* Errors that mean: there is no daemon to ask. */
static bool is_loss(int r)
{
	return r == -ECONNREFUSED || r == -ENOENT || r == -ECONNRESET ||
	       r == -EPIPE || r == -EPROTO;
}

int source_alloc(struct source *source, const char *heap, uint64_t len_bytes,
		 uint32_t fd_flags, struct dmaheap_alloc_report *ret_report,
		 char ret_why[DMAHEAP_ERROR_TEXT_MAX_BYTES])
{
	struct loan loan;
	int fd = -1, r;

	ret_why[0] = '\0';
	r = take(source, &loan);
	if (r == 0) {
		r = dmaheap_alloc_ex(loan.handle, heap, len_bytes,
				     fd_flags | O_CLOEXEC, 0, 1, &fd,
				     ret_report, ret_why,
				     DMAHEAP_ERROR_TEXT_MAX_BYTES);
		give_back(source, &loan);
	}
	/* The heap was there when the run began: -ENOENT is the socket's. */
	if (!ret_why[0])
		tell_loss(source, is_loss(r));
	return r ? r : fd;
}

int source_set_name(struct source *source, int fd, const char *name)
{
	struct loan loan;
	int r;

	r = take(source, &loan);
	if (r)
		return r;
	r = dmaheap_set_name(loan.handle, fd, name);
	give_back(source, &loan);
	return r;
}
