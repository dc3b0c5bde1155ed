#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and runs every test that needs no special machine.
set -eu
cd "$(dirname "$0")/.."
cmake --preset dev
cmake --build --preset dev
ctest --preset dev
