/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Units: sizes, counts and times as people write and read them.
 *
 * Ownership: the *_text() functions fill and return the caller's buffer.
 * Threads:   without state.
 */

#include <stdbool.h>
#include <stdint.h>

#define UNITS_TEXT_BYTES 32

struct units_text {
	char s[UNITS_TEXT_BYTES];
};

/* "10M" to bytes; K, M, G, T are binary. Return: false when it is no size. */
bool units_parse_size(const char *text, uint64_t *ret_bytes);

/* "80" or "80ms", "2s" to milliseconds. Return: false when it is no time. */
bool units_parse_ms(const char *text, uint64_t *ret_ms);

/* A decimal number. Return: false when it is none or too large. */
bool units_parse_number(const char *text, uint64_t *ret);

/* "0.5"; not negative. Return: false when it is none. */
bool units_parse_decimal(const char *text, double *ret);

/* 10485760 as "10M", 1052672 as "1028K", 1234567 as "1.2M". */
const char *units_size(uint64_t bytes, struct units_text *buffer);

/* 74600000 as "74.6ms". */
const char *units_time(uint64_t ns, struct units_text *buffer);
