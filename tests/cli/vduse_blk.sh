#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dmamap vduse-blk as a program: its help, and one sentence for each bad input. That it serves
# disks is tested on the soft system (vduse_blk.c) and in the lab.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh" "$1"
# shellcheck disable=SC2034 # run reads it
command=vduse-blk

image=$work/image

run 0 --help
out '^usage: dmamap vduse-blk --name NAME --file IMAGE'
# Every option of the help is in the manual page, and the other way round.
options() {
	grep -o -- '--[a-z][a-z-]*' "$1" | sort -u
}
page=$(dirname "$0")/../../docs/dmamap-vduse-blk.1.scd
[ "$(options "$work/out")" = "$(options "$page" | grep -vx -- --machine)" ] ||
	fail "the help and dmamap-vduse-blk(1) name other options"

bad 'needs a name; give --name' --file "$image"
bad 'needs an image; give --file' --name x
bad '--size lots: .*such as 1G' --name x --file "$image" --size lots
bad '--size 100: .*multiple of 512' --name x --file "$image" --size 100
bad '--size 0: ' --name x --file "$image" --size 0
bad '--size 16E: .*give less' --name x --file "$image" --size 16E
bad '--size .*--read-only.*give one' --name x --file "$image" --size 1M --read-only
bad '--queues 0: .*give 1 to 64' --name x --file "$image" --queues 0
bad '--queues many: ' --name x --file "$image" --queues many
bad '--queue-size 100: no power of two' --name x --file "$image" --queue-size 100
bad '--queue-size 2048: .*give 4 to 1024' --name x --file "$image" --queue-size 2048
bad '--direct maybe: .*auto, on or off' --name x --file "$image" --direct maybe
bad '--poll -1: ' --name x --file "$image" --poll -1
bad '--delay 1h: ' --name x --file "$image" --delay 1h
bad '--serial .*at most 20' --name x --file "$image" --serial 123456789012345678901
bad '--nonsense: .*--help' --nonsense
bad '--name needs a value' --name
bad 'disk.img: .*--file disk.img' disk.img
bad 'a/b cannot be a device.s name: take 1 to 255 characters without a slash' \
	--name a/b --file "$image" --size 1M
bad 'cannot be a device.s name' --name "$(printf '%0256d' 0)" --file "$image" --size 1M
[ -e "$image" ] && fail "$what: an image was made"

if [ ! -e /dev/vduse/control ]; then
	bad 'there is no /dev/vduse/control: modprobe vduse' --name x --file "$image" --size 1M
	[ -e "$image" ] && fail "$what: an image was made"
fi
finish
