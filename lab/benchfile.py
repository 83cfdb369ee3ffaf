# SPDX-License-Identifier: MIT
"""What dmamap bench --json wrote, read for lab/compare and lab/before-after."""
import json
import os

from labfile import LabError

PHASES = ('mmap', 'map', 'unmap', 'munmap')


def load(folder, system='linux'):
    """{variant: result} of one system, and the boot's run.json."""
    path = os.path.join(folder, 'bench.json')
    if not os.path.exists(path):
        raise LabError(f'{os.path.relpath(folder)} has no bench.json: the job did not end', 1)
    with open(path, encoding='utf-8') as file:
        bench = json.load(file)
    with open(os.path.join(folder, 'run.json'), encoding='utf-8') as file:
        run = json.load(file)
    return {result['name'] + ('.' + result['pfnmap_stride']
                              if system == 'soft' and result['pfnmap_stride'] else ''): result
            for result in bench['results'] if result['system'] == system}, run


def median(result, phase):
    """Nanoseconds, or None where the phase was not timed."""
    times = (result.get('phases') or {}).get(phase) if result else None
    return times['median_ns'] if times else None


def time(ns):
    """Three digits and a unit."""
    if ns is None:
        return '-'
    for unit, size in (('ns', 1), ('us', 1e3), ('ms', 1e6), ('s', 1e9)):
        value = ns / size
        if value < 999.5 or unit == 's':
            return (f'{value:.0f}' if value >= 99.95 or unit == 'ns' else
                    f'{value:.1f}' if value >= 9.995 else f'{value:.2f}') + ' ' + unit
    return ''
