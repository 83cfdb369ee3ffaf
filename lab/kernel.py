# SPDX-License-Identifier: MIT
"""A kernel to boot: fetched as Debian packages, built from Debian's source, or one's own.

All three end as the same thing: an image, the folder of its modules (or
none), its configuration where that can be known, and what to print as its
origin. Packages and builds stay in the cache until someone removes them. A
kernel may also be another one with some of its modules rebuilt.
"""
import bz2
import glob
import hashlib
import lzma
import os
import shutil
import subprocess
import zlib

from labfile import CACHE, CANNOT, LAB, LabError, read, setup

KEYS = ('arch', 'suite', 'packages', 'source', 'config', 'modules', 'append', 'of', 'rebuild')

# What the lab needs of a kernel that is not Debian's, and what for. The first
# ones decide whether it comes up at all.
TO_BOOT = {
    'BLK_DEV_INITRD': 'the initramfs', 'RD_GZIP': 'the initramfs', 'BINFMT_ELF': 'programs',
    'BINFMT_SCRIPT': 'scripts', 'TTY': 'the console', 'PROC_FS': '/proc', 'SYSFS': '/sys',
    'DEVTMPFS': '/dev', 'TMPFS': '/tmp', 'PCI': 'the devices', 'FUTEX': 'threads'}
TO_BENCH = {
    'VFIO_PCI': 'every mode', 'VFIO_GROUP': 'the vfio_type1 modes',
    'VFIO_IOMMU_TYPE1': 'the vfio_type1 modes', 'IOMMUFD': 'the iommufd modes',
    'VFIO_DEVICE_CDEV': 'the iommufd modes', 'HUGETLBFS': 'the hugetlb variants',
    'TRANSPARENT_HUGEPAGE': 'the anonymous_thp variants', 'MEMFD_CREATE': 'the memfd variants'}
CONSOLE = {'amd64': 'SERIAL_8250_CONSOLE', 'arm64': 'SERIAL_AMBA_PL011_CONSOLE',
           'ppc64el': 'HVC_CONSOLE'}


class Kernel:
    """image, modules (folder or None), config (text or None), origin (lines), and its keys.

    rebuilt: {name: file} of modules to take in place of those in the folder.
    """

    def __init__(self, values, image, modules, config, origin, own=False):
        self.own = own
        self.name = values['name']
        self.arch = values.get('arch', 'amd64')
        self.wanted = values.get('modules', '').split()
        self.append = values.get('append', '')
        self.image, self.modules, self.config, self.origin = image, modules, config, origin
        self.rebuilt = {}


def fetch(suite, arch, folder, patterns, options=()):
    """Packages unpacked into a folder of the cache; returns what they are, one a line."""
    command = [os.path.join(LAB, 'fetch'), *options, suite, arch, folder, *patterns]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ['no message'])[-1]
        raise LabError(f'packages cannot be fetched: {last}', CANNOT)
    with open(os.path.join(folder, '.packages'), encoding='utf-8') as file:
        return file.read().splitlines()


def fetch_any(suite, arch, folder, packages):
    """With all that they depend on; a port's mirror may lack some of a suite's for a while."""
    try:
        return fetch(suite, arch, folder, packages, ['--depends'])
    except LabError:
        return fetch('sid', arch, folder, packages, ['--depends'])


def from_packages(values):
    folder = os.path.join(CACHE, 'kernels', values['name'])
    origin = fetch(values['suite'], values['arch'], folder, values['packages'].split())
    # Kernels lie in /boot, those since 6.19 beside their modules.
    beside = glob.glob(os.path.join(folder, 'usr/lib/modules/*/vmlinu[xz]'))
    boot = glob.glob(os.path.join(folder, 'boot/vmlinu[xz]-*'))
    if not beside + boot:
        raise LabError(f'{values["name"]}: there is no kernel in {", ".join(origin)}', CANNOT)
    if beside:
        image, modules = beside[0], os.path.dirname(beside[0])
        config = os.path.join(modules, 'config')
    else:
        image, version = boot[0], os.path.basename(boot[0]).split('-', 1)[1]
        modules = glob.glob(os.path.join(folder, '*lib/modules', version)) + \
            glob.glob(os.path.join(folder, 'usr/lib/modules', version))
        modules, config = modules[0], os.path.join(folder, 'boot', 'config-' + version)
    text = None
    if os.path.exists(config):
        with open(config, encoding='utf-8') as file:
            text = file.read()
    return Kernel(values, image, modules, text, origin)


def from_source(values):
    """Built once for each fragment and version of the source: see build-kernel."""
    source = os.path.join(CACHE, 'sources', values['name'])
    origin = fetch(values['suite'], 'amd64', source, [values['source']])
    fragment = os.path.join(LAB, 'kernels', values['config'])
    with open(fragment, 'rb') as file:
        key = hashlib.sha256(file.read() + '\n'.join(origin).encode()).hexdigest()[:12]
    folder = os.path.join(CACHE, 'kernels', f'{values["name"]}-{key}')
    if not os.path.exists(os.path.join(folder, 'bzImage')):
        setup('lab-build')
        if subprocess.run([os.path.join(LAB, 'build-kernel'), source, fragment, folder],
                          stdin=subprocess.DEVNULL, check=False).returncode:
            raise LabError(f'{values["name"]} cannot be built: see above', CANNOT)
    with open(os.path.join(folder, 'config'), encoding='utf-8') as file:
        config = file.read()
    return Kernel(values, os.path.join(folder, 'bzImage'), None, config, origin)


def with_rebuilt(values):
    """The kernel that it is of, with what a script of lab/ builds: KERNEL RELEASE FOLDER."""
    kernel = get(values['of'])
    kernel.name = values['name']
    setup('lab-' + kernel.arch)
    release = os.path.basename(kernel.modules)
    folder = os.path.join(CACHE, 'kernels', f'{kernel.name}-{release}')
    done = subprocess.run([os.path.join(LAB, values['rebuild']), values['of'], release, folder],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LabError((done.stderr.strip().splitlines() or ['no message'])[-1], CANNOT)
    for path in glob.glob(os.path.join(folder, '*.ko')):
        name = os.path.basename(path)[:-len('.ko')]
        kernel.rebuilt[name] = path
        kernel.origin = kernel.origin + [f'{name} rebuilt by lab/{values["rebuild"]}']
    return kernel


def embedded_config(image):
    """The configuration that CONFIG_IKCONFIG puts into a kernel, or None."""
    with open(image, 'rb') as file:
        data = file.read()
    unpackers = ((b'\x1f\x8b\x08', lambda part: zlib.decompressobj(31).decompress(part)),
                 (b'\xfd7zXZ\0', lambda part: lzma.LZMADecompressor().decompress(part)),
                 (b'BZh', lambda part: bz2.BZ2Decompressor().decompress(part)),
                 (b'\x28\xb5\x2f\xfd', unpack_zstd))
    whole = [data]
    for magic, unpack in unpackers:
        at = data.find(magic)
        for _ in range(8):
            if at < 0:
                break
            try:
                whole.append(unpack(data[at:]))
            except (zlib.error, lzma.LZMAError, OSError, EOFError):
                pass
            at = data.find(magic, at + 1)
    for part in whole:
        at = part.find(b'IKCFG_ST')
        if at >= 0:
            return zlib.decompressobj(31).decompress(part[at + 8:]).decode()
    return None


def unpack_zstd(part):
    if not shutil.which('zstd'):
        return b''
    return subprocess.run(['zstd', '-dcq'], input=part, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def own(image, config, modules):
    """A kernel of the user's, built where it stands or brought along."""
    text = None
    beside = [config] if config else [
        os.path.join(os.path.dirname(image), name) for name in ('config', '../../../../.config')]
    for path in beside:
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                text = file.read()
            break
    else:
        if config:
            raise LabError(f'there is no {config}')
        text = embedded_config(image)
    if modules and not os.path.isdir(modules):
        raise LabError(f'there is no folder {modules}')
    values = {'name': os.path.basename(image), 'arch': 'amd64',
              'append': 'vfio_iommu_type1.allow_unsafe_interrupts=1 '
                        'iommufd.allow_unsafe_interrupts=1'}
    if modules:
        values['modules'] = 'vfio_iommu_type1 vfio-pci'
        inner = sorted(glob.glob(os.path.join(modules, 'lib/modules/*')))
        modules = inner[-1] if inner else modules
    return Kernel(values, image, modules, text, [os.path.abspath(image)], own=True)


def get(name, config=None, modules=None):
    """The kernel of that name in kernels/, or the image of that path."""
    if '/' in name or os.path.isfile(name):
        if not os.path.isfile(name):
            raise LabError(f'there is no kernel image {name}')
        return own(name, config, modules)
    values = read('kernels', name, KEYS)
    if 'of' in values:
        return with_rebuilt(values)
    return from_source(values) if 'source' in values else from_packages(values)


def missing_options(kernel, machine):
    """Sentences on what the kernel lacks, as (fatal, sentence)."""
    if kernel.config is None:
        return [(False, 'its configuration is not known (give CONFIG=file): nothing was checked')]
    have = dict(line.split('=', 1) for line in kernel.config.splitlines()
                if line.startswith('CONFIG_') and '=' in line)
    needs = [(True, option, what) for option, what in
             {**TO_BOOT, CONSOLE[kernel.arch]: 'the console'}.items()]
    needs += [(False, option, what) for option, what in TO_BENCH.items()]
    needs += [(False, option, f'the IOMMU of {machine["name"]}')
              for option in machine.get('config', '').split()]
    said = []
    for fatal, option, what in needs:
        value = have.get('CONFIG_' + option)
        if value is None:
            said.append((fatal, f'CONFIG_{option}=y is missing: {what}'))
        elif value == 'm' and not kernel.modules:
            said.append((fatal, f'CONFIG_{option}=m, but no modules were given (MODULES=folder, '
                                f'or =y): {what}'))
    return said
