/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Table: rows of text in columns as wide as they need.
 *
 * Ownership: table_new() gives the only reference; table_free() ends it.
 * Threads:   one.
 *
 * Without memory the table prints what it could keep and says so.
 */

#include <stdbool.h>
#include <stdio.h>

#include "ctl/ctl.h"

struct table;

/* @headings end with NULL; one that begins with ">" is right-aligned. */
struct table *table_new(const char *const *headings);

/* The next cell, from left to right and then down. @table may be NULL. */
void table_cell(struct table *table, const char *format, ...) _printf_(2, 3);

/* Rows from here on are printed as a warning where there is colour. */
void table_mark_row(struct table *table);

void table_print(const struct table *table, const struct ctl *ctl);

/* Return: NULL, always. @table may be NULL. */
struct table *table_free(struct table *table);
