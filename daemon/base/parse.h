/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Numbers, sizes, switches and lists from text, for every layer; the config
 * layer puts file, line and key around them.
 *
 * Units:     sizes are bytes; K, M, G, T are binary.
 * Ownership: nothing is kept.
 * Threads:   no state.
 *
 * Each parser takes the whole text or refuses it, and leaves its result
 * untouched then: -EINVAL (not of that form), -ERANGE (does not fit).
 */

#include "base/base.h"

/* Decimal digits only: no sign, no blank. */
int parse_u64(const char *text, uint64_t *ret) _must_check_;

/* "4096", "4K", "1G"; no sign, no fraction, no blank. */
int parse_size(const char *text, uint64_t *ret) _must_check_;

/* on, off, yes, no, true, false, 1, 0. */
int parse_bool(const char *text, bool *ret) _must_check_;

/**
 * parse_word() - the next word of a list separated by blanks or commas
 * @list: advanced past the word
 * @buf:  receives it, NUL-terminated
 *
 * Return: the word's length, 0 at the end, or -ERANGE when it does not fit.
 */
int parse_word(const char **list, char *buf, size_t size) _must_check_;
