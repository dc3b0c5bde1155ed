/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Text: the node's texts in the kernel's formats, as JSON.
 *
 * Ownership: a new reference; the text is taken apart in place.
 * Threads:   one.
 */

#include "ctl/json.h"

/**
 * text_verb() - what the verbs that print a text of the node have in common
 * @convert: makes JSON of the text, which it may write to
 *
 * Return: an exit status.
 */
int text_verb(struct ctl *ctl, enum dmaheap_node_text which,
	      json_t *(*convert)(char *text));

/* Calls @line for each line of @text, without its newline. */
void text_each_line(char *text, void (*line)(char *line, json_t *root),
		    json_t *root);

/* The numbers of @text up to its end, as an array. */
json_t *text_numbers(const char *text);
