# SPDX-License-Identifier: MIT
"""fio, qemu-storage-daemon and vdpa for the guest, with just the libraries that they load.

They come as packages of the guest's architecture with all that these depend
on, and most of that is never loaded: what goes into the guest is found by
reading what each file says it needs. Nothing of them runs here.
"""
import os
import re
import subprocess

from labfile import CACHE, CANNOT, LabError
from kernel import fetch_any

PACKAGES = ('qemu-utils', 'fio', 'iproute2')
PROGRAMS = ('usr/bin/qemu-storage-daemon', 'usr/bin/fio', 'usr/sbin/vdpa')


def unpacked(arch):
    """The folder with the packages unpacked, and what they are, one a line."""
    folder = os.path.join(CACHE, 'vduse', 'root-' + arch)
    return folder, fetch_any('trixie', arch, folder, PACKAGES)


def read(path, what):
    done = subprocess.run(['readelf', '-W', what, path], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise LabError(f'readelf cannot read {path}', CANNOT)
    return done.stdout


def files(arch):
    """[(path here, path in the guest)] and the packages of the programs."""
    root, packages = unpacked(arch)
    libraries = {}
    for base, _, names in os.walk(root):
        for name in names:
            if '.so' in name:
                libraries.setdefault(name, os.path.join(base, name))
    found, todo = {}, []
    for program in PROGRAMS:
        path = os.path.join(root, program)
        if not os.path.exists(path):
            raise LabError(f'the packages for {arch} have no {program}', CANNOT)
        todo.append((path, 'bin/' + os.path.basename(program)))
        interpreter = re.search(r'interpreter: /(.+)\]', read(path, '-l'))
        todo.append((libraries[os.path.basename(interpreter.group(1))], interpreter.group(1)))
    while todo:
        path, target = todo.pop()
        if target in found:
            continue
        found[target] = os.path.realpath(path)
        for name in re.findall(r'\(NEEDED\).*\[(.+)\]', read(path, '-d')):
            if name not in libraries:
                raise LabError(f'the packages for {arch} have no {name}', CANNOT)
            todo.append((libraries[name], 'lib/' + name))
    wanted = [line for line in packages if line.split()[0] in PACKAGES]
    return [(path, target) for target, path in found.items()], wanted
