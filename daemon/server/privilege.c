/* SPDX-License-Identifier: MIT */
#include "server/privilege.h"

#include <errno.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "base/err.h"

static int clear_bounding_set(void)
{
	for (cap_value_t c = 0; CAP_IS_SUPPORTED(c); c++)
		if (cap_get_bound(c) > 0 && cap_drop_bound(c) < 0)
			return err_raise(-errno);
	return 0;
}

/* Bit by bit the bounding set needs CAP_SETPCAP, so it goes first. */
static int clear_capabilities(void)
{
	cap_t none = cap_init();
	cap_t now = cap_get_proc();
	cap_flag_value_t may = CAP_CLEAR;
	int r = 0;

	if (!none || !now)
		r = err_raise(-ENOMEM);
	else if (cap_get_flag(now, CAP_SETPCAP, CAP_EFFECTIVE, &may) < 0)
		r = err_raise(-errno);
	if (!r && may == CAP_SET)
		r = clear_bounding_set();
	/* Kernels without ambient capabilities have none to clear. */
	if (!r && CAP_AMBIENT_SUPPORTED() && cap_reset_ambient() < 0)
		r = err_raise(-errno);
	if (!r && cap_set_proc(none) < 0)
		r = err_raise(-errno);
	cap_free(none);
	cap_free(now);
	return r;
}

int privilege_drop(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_raise(-errno);
	return clear_capabilities();
}
