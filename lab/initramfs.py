# SPDX-License-Identifier: MIT
"""The initramfs: busybox, dmamap with what it links, modules in order, the job.

A cpio archive ("newc") written from a dict of paths, so that neither root nor
device nodes nor a tree on disk are needed. It holds nothing that the job does
not use: whatever else ran in the guest would be measured with it.
"""
import glob
import gzip
import lzma
import os
import re
import stat
import subprocess

from labfile import CACHE, CANNOT, LAB, ROOT, LabError
from kernel import fetch, fetch_any
from qemu import ARCHES

FOLDERS = ('dev', 'etc', 'lab/modules', 'proc', 'results', 'root', 'run', 'sys', 'tmp', 'usr/bin',
           'usr/lib', 'usr/lib64', 'usr/sbin', 'var/tmp')
MERGED = ('bin', 'lib', 'lib64', 'sbin')  # links into usr, as in Debian


class Tree:
    """path: (mode, bytes). Parents come by themselves; the first one that says a path wins."""

    def __init__(self):
        self.files = {}
        for name in MERGED:
            self.link(name, 'usr/' + name)
        for folder in FOLDERS:
            self.folder(folder)

    def folder(self, path):
        while path:
            self.files.setdefault(path, (stat.S_IFDIR | 0o755, b''))
            path = os.path.dirname(path)

    def add(self, path, data, mode=0o644):
        path = self.resolve(path.strip('/'))
        self.folder(os.path.dirname(path))
        self.files.setdefault(path, (stat.S_IFREG | mode, data))

    def link(self, path, target):
        path = self.resolve(path.strip('/'))
        self.folder(os.path.dirname(path))
        self.files.setdefault(path, (stat.S_IFLNK | 0o777, target.encode()))

    def resolve(self, path):
        """Follow links among the parents, such as lib to usr/lib."""
        parts = path.split('/')
        for n in range(1, len(parts)):
            mode, target = self.files.get('/'.join(parts[:n]), (0, b''))
            if mode & 0o170000 == stat.S_IFLNK:
                base = '/'.join(parts[:n - 1])
                there = os.path.normpath('/' + os.path.join(base, target.decode())).strip('/')
                return self.resolve('/'.join([there, *parts[n:]]))
        return path

    def copy(self, source, path):
        with open(source, 'rb') as file:
            self.add(path, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def take(self, folder):
        """All of an unpacked package, without its documents."""
        skip = ('usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/lintian')
        for base, folders, files in os.walk(folder):
            inside = os.path.relpath(base, folder)
            inside = '' if inside == '.' else inside
            if inside.startswith(skip):
                folders[:] = []
                continue
            for name in sorted(files + folders):
                source, path = os.path.join(base, name), os.path.join(inside, name)
                if os.path.islink(source):
                    self.link(path, os.readlink(source))
                elif os.path.isfile(source) and name != '.packages':
                    self.copy(source, path)

    def bring(self, source, path):
        """A file, or all files of a folder."""
        if not os.path.exists(source):
            raise LabError(f'there is no {source}, which the job wants as {path}')
        if not os.path.isdir(source):
            self.copy(source, path)
            return
        for base, folders, files in os.walk(source):
            folders.sort()
            for name in sorted(files):
                full = os.path.join(base, name)
                self.copy(full, os.path.join(path, os.path.relpath(full, source)))

    def pack(self, path):
        with gzip.open(path, 'wb', compresslevel=1) as out:
            for number, name in enumerate(sorted(self.files), 1):
                out.write(entry(number, name, *self.files[name]))
            out.write(entry(0, 'TRAILER!!!', 0, b''))


def entry(number, name, mode, data):
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b'070701' + b''.join(b'%08x' % field for field in fields) + name.encode() + b'\0'
    return head + b'\0' * (-len(head) % 4) + data + b'\0' * (-len(data) % 4)


# ------------------------------------------------------------------- programs

def busybox(tree, arch):
    folder = os.path.join(CACHE, 'busybox-' + arch)
    fetch('trixie', arch, folder, ['busybox-static'])
    tree.copy(os.path.join(folder, 'usr/bin/busybox'), 'bin/busybox')
    for name in ('sh', 'mount', 'mkdir'):  # what init needs before it makes the rest
        tree.link('bin/' + name, 'busybox')


def native_libraries(path):
    """(soname or None for the loader, file) of all that a program of this machine links."""
    said = subprocess.run(['ldd', path], stdout=subprocess.PIPE, text=True, check=False).stdout
    for line in said.splitlines():
        found = re.match(r'\s*(?:(\S+) => )?(/\S+) \(0x', line)
        if found:
            yield found.groups()


def foreign_libraries(path, build, system):
    """The same for a program that this machine cannot run; ldd would run its loader."""
    folders = [os.path.join(build, 'lib'), os.path.join(build, 'engine'),
               *glob.glob(os.path.join(system, '*lib/*-linux-gnu')),
               *glob.glob(os.path.join(system, 'usr/lib/*-linux-gnu'))]
    seen, todo = set(), [path]
    while todo:
        said = subprocess.run(['readelf', '-ld', todo.pop()], stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, LC_ALL='C'), check=False).stdout
        loader = re.search(r'interpreter: (/\S+)\]', said)
        if loader:
            seen.add(os.path.basename(loader.group(1)))
            yield None, loader.group(1)
        for soname in re.findall(r'\(NEEDED\).*\[(\S+)\]', said):
            if soname in seen:
                continue
            seen.add(soname)
            files = [os.path.join(folder, soname) for folder in folders
                     if os.path.exists(os.path.join(folder, soname))]
            if not files:
                raise LabError(f'{os.path.basename(path)} links {soname}, which is not in {system}')
            todo.append(files[0])
            yield soname, files[0]


def dmamap(tree, arch):
    """dmamap itself: from build/, or built for the kernel's architecture."""
    build = os.path.join(ROOT, 'build' if arch == 'amd64' else 'build-' + arch)
    path, system = os.path.join(build, 'dmamap'), ''
    if os.uname().machine == ARCHES[arch][1]:
        if not os.path.exists(path):
            raise LabError(f'there is no {os.path.relpath(path, ROOT)}: run make', CANNOT)
        libraries = native_libraries(path)
    else:
        if subprocess.run([os.path.join(LAB, 'cross'), arch], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, check=False).returncode:
            raise LabError(f'dmamap cannot be built for {arch}: see above', CANNOT)
        system = glob.glob(os.path.join(CACHE, 'roots', arch + '-*-build'))[0]
        libraries = foreign_libraries(path, build, system)
    tree.copy(path, 'bin/dmamap')
    for soname, file in libraries:
        # The loader has its place in the program; libraries go where it looks.
        if soname:
            tree.copy(file, 'lib/' + soname)
        else:
            tree.copy(system + file, file)


# -------------------------------------------------------------------- modules

def plain(name):
    return name.replace('-', '_')


def unpacked(path):
    with open(path, 'rb') as file:
        data = file.read()
    if path.endswith('.xz'):
        return lzma.decompress(data)
    return gzip.decompress(data) if path.endswith('.gz') else data


def modules(tree, kernel, wanted):
    """The wanted modules and what they depend on, in the order to load them.

    Debian's packages have no modules.dep (it is made on installation) and no
    modules.builtin: each module names the ones it needs itself, and a wanted
    one that is no file is taken as built in. If it is not, the job finds out.
    """
    index = {}
    for base, _, files in os.walk(kernel.modules):
        for file in files:
            found = re.fullmatch(r'(.+)\.ko(\.xz|\.gz)?', file)
            if found:
                index[plain(found.group(1))] = os.path.join(base, file)
    index.update((plain(name), path) for name, path in kernel.rebuilt.items())
    order, seen = [], set()

    def visit(name):
        if name in seen or name not in index:
            return
        seen.add(name)
        data = unpacked(index[name])
        found = re.search(rb'(?:^|\0)depends=([^\0]*)\0', data)
        for other in found.group(1).decode().split(',') if found else []:
            if other:
                visit(plain(other))
        tree.add(f'lab/modules/{name}.ko', data)
        order.append(name)

    for name in wanted:
        visit(plain(name))
    if not index:
        raise LabError(f'there are no modules in {kernel.modules}')
    tree.add('lab/modules/order', ''.join(name + '\n' for name in order).encode())


# ------------------------------------------------------------------- the whole

def make(path, kernel, machine, job, variables):
    """Write the initramfs for a boot of this kernel on this machine with this job."""
    tree = Tree()
    wanted = machine.get('modules', '').split() + kernel.wanted + job.modules
    if kernel.modules:
        modules(tree, kernel, wanted)
    else:
        tree.add('lab/modules/order', b'')
    busybox(tree, kernel.arch)
    if job.packages:
        folder = os.path.join(CACHE, 'roots', f'{kernel.arch}-{job.suite}-' +
                              '-'.join(job.packages))
        fetch_any(job.suite, kernel.arch, folder, job.packages)
        tree.take(folder)
    if job.dmamap:
        dmamap(tree, kernel.arch)
    for source, target in job.files:
        tree.bring(source, target)
    tree.copy(os.path.join(LAB, 'init'), 'init')
    tree.copy(os.path.join(LAB, 'helpers.sh'), 'lab/helpers.sh')
    tree.copy(job.path, 'lab/job')
    quoted = ''.join(f"export {key}='" + value.replace("'", "'\\''") + "'\n"
                     for key, value in variables.items())
    tree.add('lab/variables', quoted.encode())
    tree.pack(path)
