/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Text: the node's texts in the kernel's formats, as JSON.
 *
 * Ownership: text_numbers() gives a new reference.
 * Threads:   one.
 */

#include "ctl/json.h"

/**
 * text_verb() - what the verbs that print a text of the node have in common
 * @root: consumed; what the JSON of the text begins as, e.g. an empty array
 * @line: adds a line, without its newline, to @root; may write to it
 *
 * Return: an exit status.
 */
int text_verb(struct ctl *ctl, enum dmaheap_node_text which, json_t *root,
	      void (*line)(char *line, json_t *root));

/* The numbers of @text up to its end, as an array. */
json_t *text_numbers(const char *text);
