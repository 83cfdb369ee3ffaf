#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dmamap bench vduse as a program: its help, one sentence for each bad input, and the counts that
# follow from arithmetic, whatever the machine's speed.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh" "$1"
# shellcheck disable=SC2034 # run reads it
command='bench vduse'

run 0 --help
out '^usage: dmamap bench vduse'
page=$(dirname "$0")/../../docs/dmamap-bench.1.scd
for option in $(grep -o -- '--[a-z][a-z-]*' "$work/out" | sort -u); do
	sed -n '/^# VDUSE/,/^# [A-UW-Z]/p' "$page" | grep -q -- "$option" ||
		fail "dmamap-bench(1) does not name $option under VDUSE"
done

bad '--page-size 8K: .*give 4K, 16K or 64K' --page-size 8K
bad '--page-size 64K: given twice' --page-size 64K --page-size 64K
for load in x 2 2x x4 0x4 4x0 65x1 1x129 2x4x4 -1x4 99999999999999999999x1; do
	bad "--load $load: .*give" --load "$load"
done
bad '--load 2x4: given twice' --load 2x4 --load 2x4
bad '--op erase: .*read or write' --op erase
bad '--size 1K: .*512, 4K or 64K' --size 1K
bad '--bounce lots: .*such as 64M' --bounce lots
bad '--bounce 512K: .*1M to 1G' --bounce 512K
bad '--bounce 2G: .*1M to 1G' --bounce 2G
bad '--bounce 1025K: .*one of 64K' --bounce 1025K
for delay in 5 us 1.5ms -1ms 1h; do
	bad "--delay $delay: .*such as 500us" --delay "$delay"
done
bad '--delay 11s: .*at most 10s' --delay 11s
bad '--queues 0: .*1 to 64' --queues 0
bad '--queues 65: .*1 to 64' --queues 65
bad '--runs 0: .*give 1 to' --runs 0
bad '--runs many: ' --runs many
bad '--seconds 0: .*give 1 to' --seconds 0
bad '--requests 0: .*give 1 to' --requests 0
bad '--seconds and --requests.*give one' --seconds 1 --requests 1
bad '--verify .*--op read' --verify --op read
bad 'only one output.*--json=run.json' --json --csv
bad '--nonsense: .*--help' --nonsense
bad '--load needs a value' --load
bad '16x8: .*--load 16x8' 16x8
bad 'vduse-blk: .*comes after --' vduse-blk --name d
bad '^dmamap bench vduse: --: a command was expected' --
for words in '-- --' '-- -- x' '-- x --' '-- x -- --' '-- x -- y --'; do
	# shellcheck disable=SC2086 # words
	bad '^dmamap bench vduse: --: a command was expected' $words
done
bad '^dmamap bench vduse: --: a command was expected' -- x -- ''
bad '^dmamap bench vduse: -- z: one command too many; give one, or two' -- x -- y -- z
bad "--delay is the built-in disk's, and x makes its own" --delay 1ms -- x -- y
bad 'x: an option was expected' --name -- x
for option in '--delay 1ms' '--queues 1' "--file $work/none"; do
	# shellcheck disable=SC2086 # an option and its value
	bad "${option%% *} is the built-in disk's, and x makes its own; leave one out" $option -- x
done
bad '--name is for the disk of a command; give one after --' --name d
bad '--verbose is for the disk of a command; give one after --' --verbose
echo precious >"$work/precious"
bad 'would be overwritten' --file "$work/precious"
bad 'image: cannot be made' --file "$work/none/image"
bad 'cannot be written' --json="$work/none/run.json"
truncate -s 64K "$work/small"
bad 'the disk has 64 KiB, and the load takes at least 256 KiB' --op read --file "$work/small"
[ "$(cat "$work/precious")" = precious ] || fail 'a file was overwritten'

# column NAME GRANULE: of the only run of that granule; of a disk, where that is a number.
column() {
	awk -F, -v name="$1" -v side="$2" 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i}
		$at[side ~ /^[01]$/ ? "disk" : "granule"] == side {print $at[name]}' "$work/out"
}

# is NAME GRANULE LEAST MOST
is() {
	local value
	value=$(column "$1" "$2")
	{ [ -n "$value" ] && [ "$value" -ge "$3" ] && [ "$value" -le "$4" ]; } ||
		fail "$what: $1 of $2 is $value, not $3 to $4"
}

# gone PID: it is one, and has ended, seen by whoever waits for it or not.
gone() {
	[ -n "$1" ] && [[ $(ps -o stat= -p "$1") =~ ^(Z.*)?$ ]]
}

# ends PID STATUS SECONDS: in that time, with that status.
ends() {
	local began=$SECONDS got=0
	wait "$1" || got=$?
	[ "$got" = "$2" ] || fail "exit status $got, not $2"
	[ $((SECONDS - began)) -le "$3" ] || fail 'it went on'
}

# A slow disk: 512 requests of 4 units are in flight. 64 MiB of 64K units hold 255 of them.
run 0 --page-size 64K --load 16x32 --delay 30ms --requests 96 --runs 1 --verify --csv
for granule in native 4K; do
	is requests "$granule" 1536 1536
	is failed "$granule" 0 0
	is mismatches "$granule" 0 0
	is verified "$granule" 1 1536
	is units_needed "$granule" 2048 2048
done
is units native 1023 1023
is units 4K 16383 16383
is units_most native 1017 1023
is units_most 4K 1024 2048
is requeued native 1 1000000
is flushes native 1 1000000
is requeued 4K 0 0
is flushes 4K 0 0
is pages native 1020 1023
is pages 4K 128 1023

# With four times the memory native has room for 1,023 requests as well.
run 0 --page-size 64K --load 16x32 --delay 30ms --requests 96 --runs 1 --bounce 256M --csv
is units native 4095 4095
is requeued native 0 0
is units_most native 1024 2048

# Four maps a request, and no more where none is tried again; 577 bytes, of which 1 comes back.
run 0 --page-size 64K --load 2x4 --requests 100 --runs 1 --csv
for granule in native 4K; do
	is requeued "$granule" 0 0
	[ $(($(column fast "$granule") + $(column slow "$granule"))) = 800 ] ||
		fail "$what: not 800 maps of $granule"
	is copied_from_device "$granule" 200 200
	is units_most "$granule" 0 32
done

# 64 KiB: one unit of 64K, or 16 of 4K, and three beside it.
run 0 --page-size 64K --load 1x2 --size 64K --requests 20 --runs 1 --csv
is units_needed native 8 8
is units_needed 4K 38 38
# Its disk is in this process: whose time is whose is not known.
is cpu_requests 4K 0 0
is cpu_ns 4K 0 0

run 0 --load 2x4 --requests 50 --runs 3 --file "$work/image" --verify
out '^64K +2x4 +90.9k +96.1k +\+5.7 %'
out 'pages touched: '
out '^[0-9,]+ blocks compared, none wrong'
out "times are this process's"
[ -e "$work/image" ] && fail "$what: the image is left"
run 0 --page-size 4K --load 1x1 --requests 10 --runs 1
out 'both units are 4K: what differs is noise'
run 0 --page-size 16K --op read --load 1x1 --requests 10 --runs 1 --json
out '"name": *"dmamap-bench-vduse"'
out '"unit_size": *16384'
out '"explanation": '

# The seed's table is the last one.
run 0 --load 2x4 --requests 10 --runs 1
lines 2 '^(16K|64K) +native +2x4'
grep -E '^(16K|64K) +2x4' "$work/out" | tail -n 1 | grep -q '^64K' || fail "$what: 64K is not last"

# A signal: what was complete is printed, soon.
case_is 'a signal ends it'
"$dmamap" bench vduse --load 2x4 --seconds 60 --runs 1 >"$work/out" 2>"$work/err" &
pid=$!
sleep 1
kill -TERM "$pid"
ends $pid 143 20
out '^interrupted by SIGTERM'

# A command's disk. What it leaves behind would be in $TMPDIR.
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
truncate -s 1M "$work/disk"
blk=(-- "$dmamap" vduse-blk --name peer --queues 2 --log "$work/log" --file)

run 0 --load 2x4 --load 4x8 --requests 50 --runs 1 --verify --csv "${blk[@]}" "$work/disk"
for granule in native 4K; do
	[ "$(column requests "$granule" | sort -u | paste -s)" = $'100\t200' ] ||
		fail "$what: not 100 and 200 requests of $granule"
	# What verifies is in them.
	[ "$(column cpu_requests "$granule" | sort -n | head -n 1)" -gt 100 ] || fail "$what: no CPU"
	[ "$(column mismatches "$granule" | sort -u)" = 0 ] || fail "$what: wrong bytes"
	[ "$(column queues "$granule" | sort -u)" = 2 ] || fail "$what: not 2 queues"
done
lines 1 ',command$'
lines 8 ',".*dmamap vduse-blk --name peer .*/disk"$'
run 0 --page-size 4K --load 1x1 --requests 10 --runs 1 --op read --name peer \
	"${blk[@]}" "$work/disk" --read-only
out '^disk: a process of its own, .* vduse-blk --name peer'
out 'compare with other commands only'
out ', 2 queues of 256, disk of 1 MiB$'
out '^4K +native +1x1 +[0-9]'
[ -s "$work/err" ] && fail "$what: something on stderr"
# One that was refused tells whom it asked: its device is not there before it makes it.
run 0 --page-size 4K --load 1x1 --requests 10 --runs 1 --verbose --json "${blk[@]}" "$work/disk"
err '^refused: .*: E[A-Z]+: .'
out '"--name",$'
out '"queue_size": *256'
out '"cpu_requests": *10,$'
out '"cpu_ns": *[1-9]'
out '"granule": *"native"'

# Two commands, each on a disk of its own, side by side.
truncate -s 2M "$work/disk2"
two=("${blk[@]}" "$work/disk"
	-- "$dmamap" vduse-blk --name peer --queues 1 --log "$work/log2" --file "$work/disk2")
run 0 --page-size 16K --load 2x4 --requests 50 --runs 1 --csv "${two[@]}"
lines 2 '^16384,4K,4096,2,4,write,'
lines 1 ',0,".*/disk"$'
lines 1 ',1,".*/disk2"$'
is queues 0 2 2
is queues 1 1 1
for disk in 0 1; do
	is requests "$disk" 100 100
	is cpu_requests "$disk" 100 100
	# No more than all CPUs have, and what passes around the load.
	is cpu_ns "$disk" 1 $((($(column nanoseconds "$disk") + 100000000) * $(nproc)))
done
run 0 --page-size 4K --page-size 64K --load 2x4 --load 1x1 --requests 50 --runs 3 --verify \
	--name peer --json="$work/json" --csv="$work/csv" "${two[@]}"
out '^disk \(1\): a process of its own, .*/disk$'
out '^disk \(2\): a process of its own, .*/disk2$'
out 'in units of 4K, 2 queues of 256, disk \(1\) of 1 MiB, 1 queue of 256, disk \(2\) of 2 MiB$'
time='[0-9.]+ [num]s'
lines 2 "^(4K|64K) +\\(1\\) +2x4 +[0-9,]+ +[0-9.]+ +$time +$time +$time "
lines 4 "^ +\\(2\\) +(2x4|1x1) +[0-9,]+ +[0-9.]+ +$time +$time +$time "
lines 4 "^(4K|64K) +(2x4|1x1) +[0-9.]+k +[0-9.]+k +[0-9.]+ +$time +$time +[0-9.]+$"
out 'interrupts, .* kicks'
out ', none wrong$'
grep -q 'native\|3fc3068e7247' "$work/out" && fail "$what: something of native units"
[ "$(grep -c ',4K,' "$work/csv")" = 24 ] || fail "$what: not 24 runs"
for field in '"command":' '"disk": *0,' '"disk": *1,' '"image_bytes": *2097152,' \
	'"iops_ratio": *[0-9]' '"cpu_ratio": *[0-9]' '"cpu_change": *"' '"linux": *null'; do
	grep -q -- "$field" "$work/json" || fail "$what: no $field in the JSON"
done
run 0 --page-size 4K --load 1x1 --requests 10 --runs 1 --verbose "${two[@]}"
err '^refused \(1\): '
err '^refused \(2\): '
out 'too few runs to know the noise'
run 0 --page-size 4K --load 1x1 --requests 10 --runs 1 "${blk[@]}" "$work/disk" "${blk[@]}" "$work/disk"
out ', 2 queues of 256, disks of 1 MiB$'
bad 'ended with status 1 before .*; that was command \(2\)$' --requests 1 --load 1x1 \
	"${blk[@]}" "$work/disk" -- false

bad 'the disk is read-only; give --op read' "${blk[@]}" "$work/disk" --read-only
truncate -s 64K "$work/small"
bad 'the disk has 64 KiB, and the load takes at least 256 KiB' "${blk[@]}" "$work/small"
bad 'no-such-program cannot be run' -- no-such-program
bad 'ended with status 1 before it had set a device up' -- false

# shellcheck disable=SC2016 # the command's own
run 2 -- sh -c 'echo one; echo two >&2; for n in 3 4 5 6 7 8 9 10 11; do echo "$n"; done; exit 3'
err '^dmamap bench vduse: the program ended with status 3'
err '^sh printed:$'
[ "$(tail -n +3 "$work/err" | tr -d '\n ')" = two34567891011 ] ||
	fail "$what: not the last ten lines of what it printed"

# In the middle of it, when the first of it is written: nobody answers any more.
truncate -s 1M "$work/zeroes"
# shellcheck disable=SC2016 # the command's own
killer='"$@" & until tr -d "\\0" <"$0" | grep -q .; do sleep 0.1; done; kill -KILL $! $$'
run 2 --seconds 60 -- sh -c "$killer" "$work/zeroes" "${blk[@]:1}" "$work/zeroes"
err 'stopped answering \(16K pages, 16K units, 2x4\); sh was ended by signal 9'
rm -f "$work/log"

case_is 'a signal ends the command too'
for daemon in "sleep 4321" "$dmamap vduse-blk --name peer --file $work/disk --log $work/log"; do
	# shellcheck disable=SC2086 # words
	"$dmamap" bench vduse --seconds 60 -- $daemon >"$work/out" 2>"$work/err" &
	pid=$!
	sleep 1
	peer=$(pgrep -P "$pid")
	kill -TERM "$pid"
	ends $pid 143 20
	out '^interrupted by SIGTERM'
	gone "$peer" || fail "$daemon: it is there still"
done

case_is 'a second signal ends all at once'
"$dmamap" bench vduse -- sh -c 'trap "" TERM; while :; do sleep 1; done' >"$work/out" 2>"$work/err" &
pid=$!
sleep 1
peer=$(pgrep -P "$pid")
kill -TERM "$pid"
sleep 0.2
kill -TERM "$pid"
ends $pid 143 1
gone "$peer" || fail 'the command is there still'

# shellcheck disable=SC2054 # QEMU's commas
qemu=(-- qemu-storage-daemon --blockdev "driver=file,node-name=f,filename=$work/disk"
	--export "type=vduse-blk,id=e,name=peer,node-name=f,writable=on,num-queues=2")
if command -v qemu-storage-daemon >/dev/null; then
	run 0 --load 2x4 --requests 50 --runs 1 --verify "${qemu[@]}"
	out '^64K +native +2x4 +[0-9]'
	out '^[0-9,]+ blocks compared, none wrong'
	bad "--size 512: the disk's blocks are of 4K" "${qemu[@]/%num-queues=2/logical-block-size=4096}"
else
	case_is 'bench vduse -- qemu-storage-daemon # SKIP not installed: apt install qemu-utils'
fi
[ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"
finish
