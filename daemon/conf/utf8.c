/* SPDX-License-Identifier: MIT */
#include "conf/utf8.h"

/* Return: bytes of the sequence that @c begins, 0 if it begins none. */
static size_t sequence_bytes(unsigned char c)
{
	if (c == 0)
		return 0;
	else if (c < 0x80)
		return 1;
	else if (c >= 0xc2 && c <= 0xdf)
		return 2;
	else if ((c & 0xf0) == 0xe0)
		return 3;
	else if (c >= 0xf0 && c <= 0xf4)
		return 4;
	return 0;
}

static bool second_byte_fits(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0; /* else overlong */
	case 0xed:
		return second <= 0x9f; /* else a surrogate */
	case 0xf0:
		return second >= 0x90; /* else overlong */
	case 0xf4:
		return second <= 0x8f; /* else beyond U+10FFFF */
	default:
		return true;
	}
}

static bool is_sequence(const unsigned char *s, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return false;
	return n < 2 || second_byte_fits(s[0], s[1]);
}

size_t utf8_valid_prefix(const char *s, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)s;
	size_t i = 0;

	while (i < len) {
		size_t n = sequence_bytes(bytes[i]);

		if (n == 0 || n > len - i || !is_sequence(bytes + i, n))
			break;
		i += n;
	}
	return i;
}

size_t utf8_find_control(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return i;
	}
	return len;
}
