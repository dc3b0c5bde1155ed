/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Renders the report of an experiment and looks for words in it.
 *
 * Ownership: the texts are the last report's.
 * Threads:   the main thread.
 */

#include <stdio.h>
#include <string.h>

#include "lab/report.h"
#include "support/test.h"

/* The closing sentence of a report, and its whole text. */
static char conclusion[4096];
static char text[65536];

static void render(void (*report_fn)(const void *result, struct report *report),
		   const void *result)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct report *report = NULL;

	T_REQUIRE(report_new(&report, "test", "test") == 0);
	report_fn(result, report);
	T_REQUIRE(report_render_text(report, &sb) == 0);
	(void)snprintf(text, sizeof(text), "%s", strbuf_string(&sb));
	(void)snprintf(conclusion, sizeof(conclusion), "%s",
		       report_conclusion(report));
	report_free(report);
}

#define RENDER(fn, result)                                                     \
	render((void (*)(const void *, struct report *))(void (*)(void))(fn),  \
	       (result))

#define SAYS(what)     CU_ASSERT_PTR_NOT_NULL(strstr(conclusion, (what)))
#define SAYS_NOT(what) CU_ASSERT_PTR_NULL(strstr(conclusion, (what)))
#define SHOWS(what)    CU_ASSERT_PTR_NOT_NULL(strstr(text, (what)))
