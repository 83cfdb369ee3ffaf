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
echo precious >"$work/precious"
bad 'would be overwritten' --file "$work/precious"
bad 'image: cannot be made' --file "$work/none/image"
bad 'cannot be written' --json="$work/none/run.json"
truncate -s 1M "$work/small"
bad 'small: has 1 MiB' --op read --file "$work/small"
[ "$(cat "$work/precious")" = precious ] || fail 'a file was overwritten'

# column NAME GRANULE: of the only run of that granule.
column() {
	awk -F, -v name="$1" -v granule="$2" 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i}
		$at["granule"] == granule {print $at[name]}' "$work/out"
}

# is NAME GRANULE LEAST MOST
is() {
	local value
	value=$(column "$1" "$2")
	{ [ -n "$value" ] && [ "$value" -ge "$3" ] && [ "$value" -le "$4" ]; } ||
		fail "$what: $1 of $2 is $value, not $3 to $4"
}

# A slow disk: 512 requests of 4 units are in flight. 64 MiB of 64K units hold 255 of them.
run 0 --load 16x32 --delay 30ms --requests 96 --runs 1 --verify --csv
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
run 0 --load 16x32 --delay 30ms --requests 96 --runs 1 --bounce 256M --csv
is units native 4095 4095
is requeued native 0 0
is units_most native 1024 2048

# Four maps a request, and no more where none is tried again; 577 bytes, of which 1 comes back.
run 0 --load 2x4 --requests 100 --runs 1 --csv
for granule in native 4K; do
	is requeued "$granule" 0 0
	[ $(($(column fast "$granule") + $(column slow "$granule"))) = 800 ] ||
		fail "$what: not 800 maps of $granule"
	is copied_from_device "$granule" 200 200
	is units_most "$granule" 0 32
done

# 64 KiB: one unit of 64K, or 16 of 4K, and three beside it.
run 0 --load 1x2 --size 64K --requests 20 --runs 1 --csv
is units_needed native 8 8
is units_needed 4K 38 38

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

# A signal: what was complete is printed, soon.
case_is 'a signal ends it'
"$dmamap" bench vduse --load 2x4 --seconds 60 --runs 1 >"$work/out" 2>"$work/err" &
pid=$!
sleep 1
kill -TERM "$pid"
began=$SECONDS
wait "$pid"
got=$?
[ "$got" = 143 ] || fail "exit status $got, not 143"
[ $((SECONDS - began)) -lt 20 ] || fail 'it went on'
out '^interrupted by SIGTERM'
finish
