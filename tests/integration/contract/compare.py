#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares two outputs of the contract program, line by line.

usage: compare.py REFERENCE OUTPUT [--min PERCENT] [--known FILE] [--list]

A line of the reference counts as equal when the output has the same line; a
line that stands twice must be there twice. '#N' in the reference matches any
number. --known names a file with the names of checks that are known to differ,
one a line and a reason after a colon: with it, an unexplained difference
fails, and so does an explanation of what does not differ.
"""
import argparse
import collections
import re
import sys


def read_lines(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in file
                if ": " in line and not line.startswith("#")]


def split(line):
    name, _, result = line.partition(": ")
    return name, result


def matches(reference, result):
    pattern = re.escape(reference).replace(re.escape("#N"), r"(?:\d+|\#N)")
    return re.fullmatch(pattern, result) is not None


def compare(reference, output):
    """Yields (name, wanted, got or None, equal) for each reference line."""
    results = collections.defaultdict(list)
    for line in output:
        name, result = split(line)
        results[name].append(result)
    for line in reference:
        name, wanted = split(line)
        found = next((r for r in results[name] if matches(wanted, r)), None)
        if found is not None:
            results[name].remove(found)
            yield name, wanted, found, True
        else:
            got = results[name].pop(0) if results[name] else None
            yield name, wanted, got, False


def read_known(path):
    known = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(": ")
                known[name] = reason
    return known


def check_known(path, differing):
    known = read_known(path)
    unexplained = sorted(set(differing) - set(known))
    stale = sorted(set(known) - set(differing))
    for name in unexplained:
        print(f"unexplained difference: {name}")
    for name in stale:
        print(f"explained, but equal or not there: {name}")
    return not unexplained and not stale


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reference")
    parser.add_argument("output")
    parser.add_argument("--min", type=float, default=0)
    parser.add_argument("--known")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()

    rows = list(compare(read_lines(args.reference), read_lines(args.output)))
    if not rows:
        sys.exit("compare: the reference has no lines")
    equal = sum(row[3] for row in rows)
    if args.list:
        for name, wanted, got, same in rows:
            if not same:
                print(f"{name}\n  kernel: {wanted}\n  here:   {got}")
    percent = 100 * equal / len(rows)
    print(f"{equal} of {len(rows)} lines equal: {percent:.1f} %")
    good = percent >= args.min
    if not good:
        print(f"wanted at least {args.min} %")
    if args.known:
        good &= check_known(args.known, [r[0] for r in rows if not r[3]])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
