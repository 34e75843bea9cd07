#!/bin/bash
# bfs.sh : a breadth-first search in a graph that is allocated by new and verifies itself.
BUDGET=6M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs g++

g++ -std=c++17 -O2 -pthread -o bfs "$here/bfs_kernel.cc"
plain=$(./bfs)
under=$(rt --alloc 1M -- ./bfs) || fail "the search is wrong: $under"
expect_allocated
expect_equal "the search" "$plain" "$under"
