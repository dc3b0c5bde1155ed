/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/verbs.h"

static const char *heap = "system";

static const struct option options[] = {
	{.name = "--heap",
	 .kind = OPTION_TEXT,
	 .argument = "NAME",
	 .value = &heap,
	 .help = "the heap whose policy it is (system)"},
	{0},
};

/* The request's struct, and for SET the lines after it. */
struct request {
	struct dmaheap_policy_req head;
	char lines[DMAHEAP_MESSAGE_MAX_BYTES - sizeof(struct dmaheap_header) -
		   sizeof(struct dmaheap_policy_req)];
};

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

/* Lines KEY=VALUE as an object of texts. */
static json_t *to_json(char *text)
{
	json_t *object = json_object();
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *equals = strchr(line, '=');

		if (!equals)
			continue;
		*equals = '\0';
		json_object_set_new(object, trim(line),
				    json_text(trim(equals + 1)));
	}
	return object;
}

static int show(struct ctl *ctl, struct request *req)
{
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_POLICY,
				      .payload = &req->head,
				      .payload_bytes = sizeof(req->head)};
	char *text;
	int r;

	req->head.op = DMAHEAP_POLICY_SHOW;
	r = ctl_text(ctl, "policy", &msg, NULL, &text);
	if (r)
		return r;
	if (ctl->json)
		r = json_show(to_json(text));
	else
		fputs(text, stdout);
	free(text);
	return r;
}

static int set(struct ctl *ctl, struct request *req, int n, char **settings)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		size_t len = strlen(settings[i]);

		if (!strchr(settings[i], '='))
			return ctl_misuse(ctl, "\"%s\" is not KEY=VALUE",
					  settings[i]);
		if (strchr(settings[i], '\n'))
			return ctl_misuse(ctl, "a setting is one line");
		if (at + len + 1 > sizeof(req->lines))
			return ctl_misuse(ctl, "these settings are too long");
		memcpy(req->lines + at, settings[i], len);
		req->lines[at + len] = '\n';
		at += len + 1;
	}
	req->head.op = DMAHEAP_POLICY_SET;
	if (ctl_call(ctl, "policy",
		     &(struct dmaheap_message){.opcode = DMAHEAP_OP_POLICY,
					       .payload = req,
					       .payload_bytes =
						       sizeof(req->head) + at}))
		return CTL_FAILED;
	return ctl->json ? show(ctl, req) : CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static struct request req;

	if (strlen(heap) >= sizeof(req.head.heap_name))
		return ctl_misuse(ctl, "--heap: \"%s\" is too long", heap);
	strcpy(req.head.heap_name, heap);
	if (argc == 0 || (argc == 1 && !strcmp(argv[0], "show")))
		return show(ctl, &req);
	if (strcmp(argv[0], "set") != 0)
		return ctl_misuse(ctl, "policy: \"%s\" is neither show nor set",
				  argv[0]);
	if (argc < 2)
		return ctl_misuse(ctl, "policy set: KEY=VALUE is missing");
	return set(ctl, &req, argc - 1, argv + 1);
}

const struct verb verb_policy = {
	.name = "policy",
	.arguments = "[--heap NAME] [show | set KEY=VALUE...]",
	.summary = "show or change a heap's policy",
	.details = "Keys are those of the config file: orders, gfp.ORDER, "
		   "pool.ORDER.limit, pool.refill.\nChanging it is for "
		   "administrators; it takes effect with the next request.",
	.options = options,
	.n_arguments_max = 64,
	.run = run,
};
