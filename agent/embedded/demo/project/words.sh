#!/bin/sh
# Says how many words a text has: sh words.sh TEXT
set -f # a * is a word, not a list of files
# shellcheck disable=SC2086 # to split it is the point
set -- $1
echo $(($# - 1))
