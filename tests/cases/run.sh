#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh DMAMAP MACHINE: replays all cases below this folder on the soft system. TAP.
dmamap=$(realpath "$1") && cd "$(dirname "$0")" && find . -name '*.case' | sort | sed 's,^\./,,' |
  xargs "$dmamap" replay --system soft --machine "$2" --tap
