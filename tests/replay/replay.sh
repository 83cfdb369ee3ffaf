#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dmamap replay as its users run it. What cases can say is in tests/cases; here is what is
# printed, and what happens when things are wrong.
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" "$1"

# replay STATUS ARGUMENT...: stdin is the case.
replay() {
	local want=$1 got=0
	shift
	case_is "dmamap replay $* ($label)"
	"$dmamap" replay "$@" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" = "$want" ] || fail "$what: exit status $got, not $want"
}

c0='memory ram 64K
container c0 type1v2 d0'

label='a refusal has its reason and what to do'
replay 0 - <<END
$c0
map c0 iova=0xfedff000 va=ram size=8K => EINVAL
END
out '^-:3: map c0 iova=0xfedff000 va=ram size=8K  => EINVAL$'
out '^    .*0xfee00000-0xfeefffff .*MSI window'
out '^    map 0xfedff000 size 4K alone, or start at 0xfef00000$'
out '^-: passed, 3 calls$'
out '^1 case passed, 0 failed, 0 skipped$'

label='an aperture is named'
replay 0 - <<END
machine aperture=39
$c0
map c0 iova=2^39 va=ram size=4K => EINVAL reason=aperture
END
out '^    .*39-bit aperture'

label='a failure shows both values'
replay 1 - <<END
$c0
map c0 iova=0 va=ram size=4K => EEXIST
unmap c0 iova=0 size=4K => 0 size=8K
get_info c0 => 0 caps=1,2 ranges=0..1
END
out '^    FAILED: 0, EEXIST was expected$'
out '^    FAILED: size is 4K, 8K was expected$'
out '^    FAILED: caps is 2,3,1, 1..2 was expected$|^    FAILED: caps is 2,3,1, 1,2 was expected$'
out '^    FAILED: ranges is 0..0xfedfffff,0xfef00000..0xffffffffffff, 0..1 was expected$'
out '^-: failed, 5 calls$'
out '^0 cases passed, 1 failed, 0 skipped$'

label='the reason is checked'
replay 1 - <<END
$c0
map c0 iova=0 va=ram size=1 => EINVAL reason=overlap
END
out '^    FAILED: the reason is [a-z_]+, overlap was expected$'

label='a case ends where its set-up fails'
replay 1 - <<END
container c0 type1 d0
open g0 group d0
map c0 iova=0 va=null size=4K
END
out '^-:2: open g0 group d0  => EBUSY$'
lines 0 '^-:3:'

label='which step of a set-up failed'
replay 1 - <<END
container c0 type1 d0
container c1 type1 d0
END
out '^-:2: container c1 type1 d0  => EBUSY of open of the group$'

label='a loop is printed once, its failures ten times'
replay 1 - <<END
$c0
loop 100
  map c0 iova=\$i*4K va=ram size=4K
end
loop 20
  map c0 iova=\$i*4K va=ram size=4K
end
END
lines 1 '^-:4: map'
lines 10 '^-:7: map'
out '^-: failed, 122 calls$'

label='quiet prints what fails'
replay 0 --quiet - <<END
$c0
map c0 iova=0 va=ram size=4K
END
lines 1 .
replay 1 -q - <<END
title Wrong
$c0
map c0 iova=0 va=ram size=4K => EEXIST
END
out '^-: Wrong$'
out 'FAILED'
lines 0 '^-:2'

label='skips'
replay 0 - <<END
needs system=linux
$c0
END
out '^-: skipped: only for --system linux$'
out '^0 cases passed, 0 failed, 1 skipped$'
replay 0 --machine as-kernel=6.12 - <<END
needs kernel>=7.0
END
out '^-: skipped: the soft system answers as Linux 6.12$'
replay 0 - <<END
container c0 type1 d7
END
out '^-: skipped: there is no d7: the machine has 1 device$'
replay 0 - <<END
when system=linux reset d0
when kernel>=7.3 memory ram 4K
END
out '^-: passed, 1 call$'

label='counters'
replay 1 - <<END
$c0
counters reset
map c0 iova=0 va=ram size=64K
counters maps=1 leaves_4k=16
counters maps=2
END
out '^-:5: .*=> 0$'
out '^    FAILED: maps is 1, 2 was expected$'

label='devices write, read and fault'
replay 1 - <<END
$c0
map c0 iova=0 va=ram size=8K
dma_write d0 iova=4K size=4K value=0x5a at=ram+4K
check ram+4K size=4K value=0x5a
dma_read d0 iova=4K size=4K value=0x5a
dma_read d0 iova=8K size=1 value=0 => fault
dma_read d0 iova=4K size=4K value=0x5b
check ram+4K size=4K value=0x5b
dma_write d0 iova=8K size=1 value=1
END
out 'FAILED: the device read 0x5a at \+0x0, 0x5b was expected'
out 'FAILED: the byte at \+0x0 is 0x5a, 0x5b was expected'
out '^-:10: .*=> fault$'
lines 3 FAILED

label='limits and processes'
replay 0 - <<END
memory ram 4M
container c0 type1v2 d0
limit memlock=64K
capability ipc_lock=off
map c0 iova=0 va=ram size=64K
map c0 iova=1M va=ram size=4K => ENOMEM reason=memlock
process p1
as p1 map c0 iova=2M va=ram size=64K
as p1 limit memlock=128K
as p1 map c0 iova=3M va=ram size=64K
charged locked=64K
as p1 charged locked=128K
exit p1
as p1 map c0 iova=4M va=ram size=4K => ESRCH
END
out 'CAP_IPC_LOCK'

label='a case changes no memory but its own'
replay 1 - <<END
memory ram 64K
fill ram+60K size=8K value=1
munmap ram+4K size=1G
protect 0x1000 size=4K prot=none
munmap ram
munmap ram
END
lines 2 '^    FAILED: offset 0x.* reach past the memory'
lines 2 '^    FAILED: only memory of the case'

label='each case has its own process'
printf 'limit files=20\n' >"$work/limit.case"
printf '%s\nmap c0 iova=0 va=ram size=4K\n' "$c0" >"$work/map.case"
replay 0 "$work/limit.case" "$work/map.case" "$work/map.case"
out '^3 cases passed'

label='JSON'
replay 1 --json "$work/map.case" - <<END
title with "quotes" and \\ and ä
$c0
map c0 iova=0 va=ram size=1 => 0
unmap c0 iova=0 size=1M => 0 size=1
END
python3 - "$work/out" <<'END' || fail 'the JSON is not what it should be'
import json, sys
d = json.load(open(sys.argv[1], encoding='utf-8'))
assert d['schema'] == {'name': 'dmamap-replay', 'version': 1}, d['schema']
assert (d['system'], d['passed'], d['failed'], d['skipped'], d['bad']) == ('soft', 1, 1, 0, 0)
a, b = d['cases']
assert a['verdict'] == 'passed' and b['verdict'] == 'failed'
assert b['title'] == 'with "quotes" and \\ and ä', b['title']
m, u = b['calls'][2:]
assert m['result'] == -22 and m['result_text'] == 'EINVAL' and m['reason']['kind'], m
assert m['failures'] == ['EINVAL, 0 was expected'] and m['line'] == 4, m
assert u['outputs']['size'] == 0, u
END

label='TAP'
replay 0 --tap "$work/map.case" - <<END
needs system=linux
END
out '^ok 2 - - # SKIP only for --system linux$'
replay 1 --tap - "$work/map.case" <<END
title Odd # title
$c0
map c0 iova=0 va=ram size=1
END
out '^1\.\.2$'
out '^not ok 1 - -: Odd '
out '^ok 2 - .*map.case$'
out '^#     FAILED'

label='several files'
replay 2 "$work/map.case" /nowhere/x.case "$work/map.case"
err '/nowhere/x.case cannot be read \(No such file'
out '^2 cases passed'

label='bad input'
for bad in '--system windows' '--nonsense' '--json --tap x' '' '-z' '--machine'; do
	# shellcheck disable=SC2086
	replay 2 $bad </dev/null
	[ "$(wc -l <"$work/err")" = 1 ] || fail 'not one sentence'
	[ -s "$work/out" ] && fail 'something on stdout'
done
label='errors of a case say where'
replay 2 - <<END
$c0
map c0 iov=0
END
err '^dmamap replay: -:3:8: map has no key iov; there are iova, '
replay 2 --machine aperture=no - </dev/null
err '^dmamap replay: --machine: '
replay 2 - <<END
machine aperture=7
END
err '^dmamap replay: -: machine aperture=7: '
if [ ! -e /dev/vfio/vfio ] && [ ! -e /dev/iommu ]; then
	replay 2 --system linux - </dev/null
	err 'neither /dev/vfio/vfio nor /dev/iommu; modprobe'
fi

label='advice is for reasons that exist'
case_is "$label"
python3 - "$(dirname "$0")/../.." <<'END' || fail 'a name in cli/replay/advice.c is no reason'
import re, sys
read = lambda path: open(sys.argv[1] + '/' + path, encoding='utf-8').read()
known = re.findall(r'\bKIND\((\w+),', read('engine/reason.c'))
known += re.findall(r'\bK\((\w+),', read('soft/reason.h'))
table = re.findall(r'^\t\{"(\w+)",', read('cli/replay/advice.c'), re.M)
assert len(table) > 20, table
unknown = set(table) - set(known)
assert not unknown, unknown
END

label='a full disk'
if [ -c /dev/full ]; then
	case_is "$label"
	got=0
	"$dmamap" replay "$work/map.case" >/dev/full 2>"$work/err" || got=$?
	[ $got = 2 ] || fail "exit status $got, not 2"
	err '^dmamap replay: standard output cannot be written \(No space left on device\)'
	[ "$(wc -l <"$work/err")" = 1 ] || fail 'not one sentence'
fi

label='help'
replay 0 --help
out 'usage: dmamap replay'
replay 0 --statements
out '^get_dirty on'

label='a crash is one case that fails'
replay 1 - "$work/map.case" <<END
memory ram 4K kind=memfd
mmap m ram size=4K offset=64K
fill m size=4K value=1
END
# A sanitizer ends it itself.
out '^-: line 3: the process of the case (crashed \(Bus error\)|ended with status [0-9]+)$'
out '^1 case passed, 1 failed'

label='a million lines take less than five seconds'
awk 'BEGIN {
	print "memory ram 4M\niommufd f0\nioas i0 f0 d0"
	for (i = 0; i < 100000; i++)
		printf "map i0 iova=2^32+%dK va=ram+%dK size=4K\n", i * 4, i % 1000 * 4
}' >"$work/many.case"
start=$(date +%s%N)
replay 0 "$work/many.case"
took=$((($(date +%s%N) - start) / 1000000))
out '^.*many.case: passed, 100003 calls$'
# A tenth of the lines, with room for sanitizers and a busy machine.
[ "$took" -lt 5000 ] || fail "it took $took ms"

label='random calls on two soft systems'
replay 0 --random 500 --seed 5
out '^seed 5$'
out '^5[0-9][0-9] calls in .* seed 5: no mismatch$'
replay 2 --random 0
err '^dmamap replay: --random 0: give a number of calls, such as 10000$'
replay 2 --random 10 "$work/map.case"
err 'leave out the files$'
replay 2 --seed 5 "$work/map.case"
err 'are for --random; give it too$'
finish
