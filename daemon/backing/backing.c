/* SPDX-License-Identifier: MIT */
#include "backing/backing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

void backing_process_setup(void)
{
}

int backing_new(struct backing **ret _unused_,
		const struct backing_params *params _unused_,
		char error[BACKING_ERROR_BYTES])
{
	snprintf(error, BACKING_ERROR_BYTES, "backing: not built yet");
	return err_raise(-ENOSYS);
}

struct backing *backing_free(struct backing *b _unused_)
{
	return NULL;
}

int backing_event_fd(const struct backing *b _unused_)
{
	return -1;
}

void backing_dispatch(struct backing *b _unused_)
{
}

void backing_set_orders(struct backing *b _unused_, uint32_t orders _unused_)
{
}

void backing_set_limits(struct backing *b _unused_,
			uint64_t budget_bytes _unused_, bool recycle _unused_)
{
}

int backing_create(struct backing *b _unused_,
		   const struct backing_spec *spec _unused_,
		   backing_created_fn done _unused_, void *ctx _unused_,
		   struct backing_buffer **ret _unused_)
{
	return err_raise(-ENOSYS);
}

void backing_cancel(struct backing *b _unused_,
		    struct backing_buffer *bb _unused_)
{
}

int backing_open(struct backing *b _unused_, struct backing_buffer *bb _unused_,
		 uint32_t fd_flags _unused_, int *ret_fd _unused_)
{
	return err_raise(-ENOSYS);
}

void backing_recycle(struct backing *b _unused_,
		     struct backing_buffer *bb _unused_,
		     backing_recycled_fn done _unused_, void *ctx _unused_)
{
}

void backing_forget(struct backing *b _unused_,
		    struct backing_buffer *bb _unused_)
{
}

void backing_drop(struct backing *b _unused_,
		  struct backing_buffer *bb _unused_)
{
}

int backing_adopt(struct backing *b _unused_, int fd _unused_,
		  struct backing_buffer **ret _unused_,
		  struct backing_identity *ret_id _unused_,
		  char error[BACKING_ERROR_BYTES] _unused_)
{
	return err_raise(-ENOSYS);
}

struct backing_buffer *backing_find(struct backing *b _unused_,
				    dev_t dev _unused_, ino_t ino _unused_)
{
	return NULL;
}

void backing_buffer_set_owner(struct backing_buffer *bb _unused_,
			      void *owner _unused_)
{
}

void *backing_buffer_owner(const struct backing_buffer *bb _unused_)
{
	return NULL;
}

enum backing_kind backing_buffer_kind(const struct backing_buffer *bb _unused_)
{
	return BACKING_PLAIN;
}

uint64_t backing_buffer_size(const struct backing_buffer *bb _unused_)
{
	return 0;
}

void backing_buffer_file(const struct backing_buffer *bb _unused_,
			 dev_t *ret_dev, ino_t *ret_ino)
{
	*ret_dev = 0;
	*ret_ino = 0;
}

int backing_buffer_fd(const struct backing_buffer *bb _unused_)
{
	return -1;
}

const char *backing_kind_name(enum backing_kind kind)
{
	static const char *const names[] = {"auto", "plain", "collapse",
					    "folio", "hugetlb"};

	return names[kind];
}

const char *backing_lifetime_name(enum backing_lifetime lifetime)
{
	static const char *const names[] = {"exact", "sweep", "explicit"};

	return names[lifetime];
}

void backing_get_stats(struct backing *b _unused_, struct backing_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
}
