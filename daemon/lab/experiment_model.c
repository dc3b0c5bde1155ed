/* SPDX-License-Identifier: MIT */
#include "lab/experiment_model.h"

#include "lab/setup.h"

const char *experiment_profile(struct cost_profile *ret)
{
	struct conf_error err;

	if (lab_profile(ret, "arm64-phone", NULL, &err) == 0)
		return "arm64-phone";
	*ret = cost_profile_default();
	return "built-in";
}
