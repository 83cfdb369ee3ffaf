# SPDX-License-Identifier: MIT
"""One boot: QEMU's command line, the guest's console, and what the guest says there.

The console is the one way out that every kernel and machine has without a
module, so status and results come over it (see init): the job's own lines,
then a tar archive in base64 with its checksum. A line that the kernel prints
meanwhile breaks the checksum; it is told, not lost.
"""
import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import threading

from labfile import setup

# By Debian's name of the architecture: QEMU, the host's machine, the console.
ARCHES = {'amd64': ('qemu-system-x86_64', 'x86_64', 'ttyS0'),
          'arm64': ('qemu-system-aarch64', 'aarch64', 'ttyAMA0'),
          'ppc64el': ('qemu-system-ppc64', 'ppc64le', 'hvc0')}


def accelerator(arch, clock, seed):
    """Arguments for the clock, and what they are called in the output.

    With icount the guest's clock is the number of instructions, whatever the
    host does meanwhile. A fixed seed and date leave nothing else to differ.
    """
    if clock == 'instructions':
        return (['-accel', 'tcg,thread=single', '-icount', 'shift=0,sleep=off,align=off',
                 '-smp', '1', '-seed', str(seed), '-rtc', 'base=2026-01-01T00:00:00,clock=vm'],
                'instructions (QEMU icount: 1 ns each; no caches, no TLB, no waiting)')
    if os.uname().machine == ARCHES[arch][1] and kvm_works():
        return ['-accel', 'kvm', '-smp', '2'], 'wall, under KVM'
    return ['-accel', 'tcg,thread=multi', '-smp', '2'], \
        "wall, under emulation (TCG): the emulator's times, not a machine's"


def kvm_works():
    """A virtual machine may show /dev/kvm on a processor that cannot: guests then hang."""
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return False
    if os.uname().machine != 'x86_64':
        return True
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as file:
        return bool({'vmx', 'svm'} & set(file.read().split()))


def command(kernel, machine, initramfs, memory, append, clock, seed=1):
    program, _, console = ARCHES[kernel.arch]
    if not shutil.which(program):
        setup('lab' if kernel.arch == 'amd64' else 'lab-' + kernel.arch)
    arguments, _ = accelerator(kernel.arch, clock, seed)
    cmdline = ['console=' + console, 'panic=-1', 'loglevel=4', machine.get('append', ''),
               kernel.append, append]
    if clock == 'instructions':
        cmdline += ['nokaslr', 'norandmaps']
    return [program, *arguments, *machine['options'].split(), *machine.get('devices', '').split(),
            '-m', str(memory), '-nodefaults', '-display', 'none', '-serial', 'stdio',
            '-no-reboot', '-kernel', kernel.image, '-initrd', initramfs,
            '-append', ' '.join(word for word in cmdline if word)]


def memory_here():
    """MiB that programs can have now, or None."""
    try:
        with open('/proc/meminfo', encoding='ascii') as lines:
            for line in lines:
                if line.startswith('MemAvailable:'):
                    return int(line.split()[1]) // 1024
    except OSError:
        pass
    return None


class Guest:
    """What the console has said so far."""

    def __init__(self, results, show):
        self.kernel = self.status = self.digest = None
        self.part = 'boot'
        self.lines = []
        self.results, self.show = results, show
        self.complaint = None

    def hear(self, line):
        word, _, rest = line[len('@lab '):].partition(' ') if line.startswith('@lab ') \
            else ('', '', '')
        if word == 'kernel':
            self.kernel = rest
        elif word == 'job':
            self.part = 'job'
        elif word == 'status':
            self.status, self.part = int(rest), 'after'
        elif word == 'results':
            self.digest, self.part = rest, 'results'
        elif word == 'end':
            self.part = 'end'
            self.unpack()
        elif self.part == 'job':
            self.show(line)
        elif self.part == 'results':
            self.lines.append(line)

    def unpack(self):
        try:
            data = base64.b64decode(''.join(self.lines), validate=True)
        except ValueError:
            data = b''
        if hashlib.sha256(data).hexdigest() != self.digest:
            self.complaint = 'the results came out damaged'
            return
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                path = os.path.normpath(os.path.join(self.results, member.name))
                if member.isfile() and path.startswith(self.results + os.sep):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, 'wb') as out:
                        shutil.copyfileobj(archive.extractfile(member), out)


def boot(arguments, log, results, limit, show):
    """Run QEMU to the guest's end. Returns the Guest; .complaint says what went wrong."""
    guest = Guest(results, show)
    late = threading.Event()
    with open(log, 'wb') as kept, subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT) as qemu:

        def stop():
            late.set()
            qemu.kill()
        timer = threading.Timer(limit, stop)
        timer.start()
        try:
            for raw in qemu.stdout:
                if guest.part != 'results':
                    kept.write(raw)
                    kept.flush()
                guest.hear(raw.decode(errors='replace').rstrip('\r\n'))
                if guest.part == 'end':
                    break
        finally:
            timer.cancel()
            qemu.kill()
    if late.is_set():
        guest.complaint = f'the time limit of {limit} s is over'
    elif guest.part != 'end':
        guest.complaint = {'boot': 'the kernel did not come up', 'job': 'it ended within the job'
                           }.get(guest.part, 'it ended before the results were out')
    return guest
