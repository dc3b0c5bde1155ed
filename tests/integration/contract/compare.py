#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares two outputs of the contract program, line by line.

usage: compare.py REFERENCE OUTPUT [--min PERCENT] [--known FILE] [--list]

A line of the reference counts as equal when the output has the same line; a
line that stands twice must be there twice. '#N' in the reference matches any
number. --known names the file of known differences: with it a difference that
it does not explain fails, and so does an explanation that nothing needs.
--strict says that the output was made with that option.
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


def read_known(path, strict):
    """Patterns that hold in this mode, and whether each must be needed."""
    known = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.strip() or line.startswith("#"):
                continue
            when, _, rest = line.strip().partition(" ")
            pattern, _, reason = rest.partition(": ")
            if when not in ("both", "plain", "sometimes") or not reason:
                sys.exit(f"{path}: cannot read: {line.strip()}")
            if when != "plain" or not strict:
                known[pattern] = when != "sometimes"
    return known


def check_known(path, strict, differing):
    known = read_known(path, strict)
    # "[" and "?" stand for themselves in the names of checks.
    matcher = {p: re.compile(re.escape(p).replace(r"\*", ".*")) for p in known}
    unexplained = [name for name in differing
                   if not any(m.fullmatch(name) for m in matcher.values())]
    stale = [p for p, needed in known.items() if needed and
             not any(matcher[p].fullmatch(name) for name in differing)]
    for name in unexplained:
        print(f"unexplained difference: {name}")
    for name in stale:
        print(f"explained, but nothing differs: {name}")
    return not unexplained and not stale


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reference")
    parser.add_argument("output")
    parser.add_argument("--min", type=float, default=0)
    parser.add_argument("--known")
    parser.add_argument("--strict", action="store_true")
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
        good &= check_known(args.known, args.strict,
                            [row[0] for row in rows if not row[3]])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
