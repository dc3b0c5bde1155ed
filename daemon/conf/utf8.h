/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Is a text what a person could have typed?
 *
 * Units:     bytes.
 * Ownership: nothing is kept.
 * Threads:   no state.
 */

#include "base/base.h"

/* Return: how many bytes at the start of @s are well-formed UTF-8 (no
 * surrogates, no overlong forms, no NUL); @len if all are. */
size_t utf8_valid_prefix(const char *s, size_t len);

/* Return: index of the first control character other than a tab, or @len. */
size_t utf8_find_control(const char *s, size_t len);
