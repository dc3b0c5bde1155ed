/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/hold.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

#define ERRNO_MAX 133 /* EHWPOISON, the last one that has a name */

static const char *heap = "", *err_name, *rate;
static uint64_t uid, pid, fail_nth, stall_ms, count;
static bool has_uid, has_pid, has_nth, has_stall, keep;

static const struct option options[] = {
	{.name = "--heap",
	 .kind = OPTION_TEXT,
	 .argument = "NAME",
	 .value = &heap,
	 .help = "only this heap's allocations (any)"},
	{.name = "--uid",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &uid,
	 .given = &has_uid,
	 .help = "only this user's (any)"},
	{.name = "--pid",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &pid,
	 .given = &has_pid,
	 .help = "only this process's (any)"},
	{.name = "--fail-nth",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &fail_nth,
	 .given = &has_nth,
	 .help = "the Nth allocation from now fails, with --count more after "
		 "it"},
	{.name = "--fail-rate",
	 .kind = OPTION_TEXT,
	 .argument = "P",
	 .value = &rate,
	 .help = "each fails with probability P: 0.01, or 1%"},
	{.name = "--errno",
	 .kind = OPTION_TEXT,
	 .argument = "NAME",
	 .value = &err_name,
	 .help = "with this error (ENOMEM)"},
	{.name = "--stall",
	 .kind = OPTION_MS,
	 .argument = "MS",
	 .value = &stall_ms,
	 .given = &has_stall,
	 .help = "each takes so many milliseconds longer: 80, 80ms or 2s"},
	{.name = "--count",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &count,
	 .help = "end after so many were hit (1 with --fail-nth, else never)"},
	{.name = "--keep",
	 .kind = OPTION_SWITCH,
	 .value = &keep,
	 .help = "leave it on and return"},
	{0},
};

/* Return: the number of the errno called @name, 0 when there is none. */
static int find_errno(const char *name)
{
	for (int e = 1; e <= ERRNO_MAX; e++) {
		const char *known = strerrorname_np(e);

		if (known && !strcmp(known, name))
			return e;
	}
	return 0;
}

/* "0.25" or "25%" in millionths. Return: false when it is no probability. */
static bool parse_rate(const char *text, uint32_t *ret_ppm)
{
	size_t n = strlen(text);
	double scale = 1e6, value;
	char number[32];

	if (n >= sizeof(number))
		return false;
	strcpy(number, text);
	if (n > 0 && number[n - 1] == '%') {
		number[n - 1] = '\0';
		scale = 1e4;
	}
	if (!units_parse_decimal(number, &value) || value * scale > 1e6)
		return false;
	*ret_ppm = (uint32_t)(value * scale + 0.5);
	return *ret_ppm > 0;
}

static int check_numbers(const struct ctl *ctl)
{
	static const struct {
		const char *name;
		const uint64_t *value;
	} numbers[] = {{"--uid", &uid},
		       {"--pid", &pid},
		       {"--fail-nth", &fail_nth},
		       {"--stall", &stall_ms},
		       {"--count", &count}};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (*numbers[i].value >= DMAHEAP_INJECT_ANY_ID)
			return ctl_misuse(ctl, "%s: %ju is too large",
					  numbers[i].name,
					  (uintmax_t)*numbers[i].value);
	if (has_nth && fail_nth == 0)
		return ctl_misuse(ctl, "--fail-nth: counting begins with 1");
	if (has_nth && rate)
		return ctl_misuse(ctl, "--fail-nth and --fail-rate exclude "
				       "each other");
	if (!has_nth && !rate && !has_stall)
		return ctl_misuse(ctl, "inject: nothing to inject: --fail-nth, "
				       "--fail-rate or --stall is needed");
	if (strlen(heap) >= DMAHEAP_NAME_MAX_BYTES)
		return ctl_misuse(ctl, "--heap: \"%s\" is too long", heap);
	return CTL_OK;
}

static int fill_request(const struct ctl *ctl, struct dmaheap_inject_req *req)
{
	int r = check_numbers(ctl);

	if (r)
		return r;
	*req = (struct dmaheap_inject_req){
		.flags = keep ? DMAHEAP_INJECT_KEEP : 0,
		.uid = has_uid ? (uint32_t)uid : DMAHEAP_INJECT_ANY_ID,
		.pid = has_pid ? (uint32_t)pid : DMAHEAP_INJECT_ANY_ID,
		.fail_nth = (uint32_t)fail_nth,
		.stall_ms = (uint32_t)stall_ms,
		.count = (uint32_t)count};
	strcpy(req->heap_name, heap);
	if (rate && !parse_rate(rate, &req->fail_rate_ppm))
		return ctl_misuse(ctl,
				  "--fail-rate: \"%s\" is not a "
				  "probability above 0, up to 1 or 100%%",
				  rate);
	if (err_name) {
		req->err = find_errno(err_name);
		if (!req->err)
			return ctl_misuse(ctl,
					  "--errno: no error is called "
					  "\"%s\"",
					  err_name);
	}
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_inject_req req;
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_INJECT,
				      .payload = &req,
				      .payload_bytes = sizeof(req)};
	bool clear = argc == 1 && !strcmp(argv[0], "clear");
	int r;

	if (argc == 1 && !clear)
		return ctl_misuse(ctl, "inject: \"%s\" is not clear", argv[0]);
	if (clear)
		req = (struct dmaheap_inject_req){.flags = DMAHEAP_INJECT_CLEAR,
						  .uid = DMAHEAP_INJECT_ANY_ID,
						  .pid = DMAHEAP_INJECT_ANY_ID};
	else if ((r = fill_request(ctl, &req)))
		return r;
	hold_begin();
	if (ctl_call(ctl, "inject", &msg))
		return CTL_FAILED;
	if (clear || keep)
		return CTL_OK;
	fputs("injecting until this program ends (interrupt it)\n", stderr);
	return hold_connection(ctl, "inject");
}

const struct verb verb_inject = {
	.name = "inject",
	.arguments = "[clear]",
	.summary = "make allocations fail or stall",
	.details = "Lasts as long as this program, or with --keep until "
		   "\"inject clear\". For\nadministrators.",
	.options = options,
	.n_arguments_max = 1,
	.run = run,
};
