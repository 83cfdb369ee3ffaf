#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lab's own parts, without a boot: descriptions, initramfs, console, comparison. TAP."""
import base64
import gzip
import hashlib
import importlib.machinery
import importlib.util
import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAB = os.path.join(ROOT, 'lab')
sys.path.insert(0, LAB)
# pylint: disable=wrong-import-position
import initramfs
import kernel
import labfile
import qemu


def script(name):
    """A program of lab/ as a module."""
    loader = importlib.machinery.SourceFileLoader('lab_' + name, os.path.join(LAB, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def names_in(archive):
    """{path: (mode, bytes)} of a cpio archive."""
    found, at = {}, 0
    while True:
        field = [int(archive[at + 6 + 8 * n:at + 14 + 8 * n], 16) for n in range(13)]
        name = archive[at + 110:at + 110 + field[11] - 1].decode()
        at += (110 + field[11] + 3) & ~3
        if name == 'TRAILER!!!':
            return found
        found[name] = (field[1], archive[at:at + field[6]])
        at += (field[6] + 3) & ~3


class Descriptions(unittest.TestCase):
    def test_values_may_have_blanks_and_lines(self):
        said = labfile.parse("# a comment\narch=amd64\noptions='\n  -M q35\n  -cpu max\n'\n",
                             ('arch', 'options'), 'x')
        self.assertEqual(said, {'arch': 'amd64', 'options': '-M q35 -cpu max'})

    def test_an_unknown_key_is_named(self):
        with self.assertRaisesRegex(labfile.LabError, 'lab/x: "arhc=amd64" is not one of arch'):
            labfile.parse('arhc=amd64', ('arch',), 'lab/x')

    def test_every_kernel_machine_and_job_reads(self):
        run = script('run')
        for name in labfile.names('kernels'):
            values = labfile.read('kernels', name, kernel.KEYS)
            # One that is another's with some modules rebuilt.
            self.assertEqual('of' in values, 'rebuild' in values)
            if 'of' in values:
                self.assertTrue(os.access(os.path.join(labfile.LAB, values['rebuild']), os.X_OK))
                values = labfile.read('kernels', values['of'], kernel.KEYS)
            self.assertIn(values['arch'], qemu.ARCHES)
            self.assertEqual('source' in values, 'config' in values)
        for name in labfile.names('machines'):
            self.assertIn(labfile.read('machines', name, run.MACHINE_KEYS)['arch'], qemu.ARCHES)
        for name in labfile.names('jobs'):
            self.assertTrue(run.Job(name).limit)


class Image(unittest.TestCase):
    def test_the_archive_has_what_was_added_and_the_first_one_wins(self):
        tree = initramfs.Tree()
        tree.add('lib/one', b'first')
        tree.add('/usr/lib/one', b'second')  # the same place: lib is a link
        tree.add('bin/odd', b'12345', 0o755)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'image')
            tree.pack(path)
            with gzip.open(path) as file:
                found = names_in(file.read())
        self.assertEqual(found['lib'][1], b'usr/lib')
        self.assertEqual(found['usr/lib/one'][1], b'first')
        self.assertEqual(found['usr/bin/odd'], (0o100755, b'12345'))

    def test_a_folder_comes_with_all_its_files(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, 'deep'))
            for name in ('one.case', 'deep/two.case'):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(name)
            tree = initramfs.Tree()
            tree.bring(folder, 'cases')
            with self.assertRaisesRegex(labfile.LabError, 'there is no .*/nothing, which'):
                tree.bring(os.path.join(folder, 'nothing'), 'x')
        self.assertEqual(tree.files['cases/one.case'][1], b'one.case')
        self.assertEqual(tree.files['cases/deep/two.case'][1], b'deep/two.case')

    def test_modules_come_after_what_they_depend_on(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, depends in (('vfio-pci', 'vfio-pci-core'), ('vfio', 'irqbypass'),
                                  ('vfio-pci-core', 'vfio,irqbypass'), ('irqbypass', '')):
                data = b'\x7fELF\0license=GPL\0depends=' + depends.encode() + b'\0name=x\0'
                with lzma.open(os.path.join(folder, name + '.ko.xz'), 'wb') as file:
                    file.write(data)
            with open(os.path.join(folder, 'mine.ko'), 'wb') as file:
                file.write(b'\x7fELF\0depends=\0name=mine\0')
            given = kernel.Kernel({'name': 'x', 'arch': 'amd64'}, 'image', folder, None, [])
            tree = initramfs.Tree()
            initramfs.modules(tree, given, ['vfio-pci', 'built-in-one'])
            # A module that was rebuilt is in the place of the kernel's own.
            given.rebuilt['vfio-pci'] = os.path.join(folder, 'mine.ko')
            other = initramfs.Tree()
            initramfs.modules(other, given, ['vfio-pci'])
        self.assertEqual(tree.files['lab/modules/order'][1].split(),
                         [b'irqbypass', b'vfio', b'vfio_pci_core', b'vfio_pci'])
        self.assertEqual(other.files['lab/modules/order'][1].split(), [b'vfio_pci'])
        self.assertIn(b'name=mine', other.files['lab/modules/vfio_pci.ko'][1])


class Console(unittest.TestCase):
    def say(self, lines):
        shown = []
        with tempfile.TemporaryDirectory() as folder:
            guest = qemu.Guest(folder, shown.append)
            for line in lines:
                guest.hear(line)
            files = {name: os.path.getsize(os.path.join(folder, name))
                     for name in os.listdir(folder)}
        return guest, shown, files

    def lines(self, spoil=False):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode='w:gz') as archive:
            for name in ('./bench.json', '../outside'):
                member = tarfile.TarInfo(name)
                member.size = 3
                archive.addfile(member, io.BytesIO(b'{}\n'))
        text = base64.b64encode(raw.getvalue()).decode()
        lines = [text[at:at + 76] for at in range(0, len(text), 76)]
        if spoil:
            lines.insert(1, '[  1.0] a line of the kernel')
        return ['[0.0] booting', '@lab kernel 7.3.4', '@lab job', 'hello', '@lab status 3',
                'after', '@lab results ' + hashlib.sha256(raw.getvalue()).hexdigest(), *lines,
                '@lab end']

    def test_status_lines_and_results_come_out(self):
        guest, shown, files = self.say(self.lines())
        self.assertEqual((guest.kernel, guest.status, guest.complaint), ('7.3.4', 3, None))
        self.assertEqual(shown, ['hello'])
        self.assertEqual(files, {'bench.json': 3})

    def test_damage_is_told(self):
        guest, _, files = self.say(self.lines(spoil=True))
        self.assertEqual(guest.complaint, 'the results came out damaged')
        self.assertEqual(files, {})


class Options(unittest.TestCase):
    def kernel(self, config, modules=None):
        return kernel.Kernel({'name': 'own'}, 'own', modules, config, [])

    def test_what_is_missing_is_said_with_its_reason(self):
        said = kernel.missing_options(self.kernel('CONFIG_PCI=y\nCONFIG_VFIO_PCI=m\n'),
                                      {'name': 'q35-amd', 'config': 'AMD_IOMMU'})
        self.assertIn((True, 'CONFIG_BLK_DEV_INITRD=y is missing: the initramfs'), said)
        self.assertIn((False, 'CONFIG_AMD_IOMMU=y is missing: the IOMMU of q35-amd'), said)
        self.assertTrue(any('CONFIG_VFIO_PCI=m, but no modules' in text for _, text in said))
        self.assertFalse(any('CONFIG_PCI=' in text for _, text in said))

    def test_our_fragment_lacks_nothing(self):
        with open(os.path.join(LAB, 'kernels', '7.3-iommufd.config'), encoding='utf-8') as file:
            fragment = file.read()
        self.assertEqual(kernel.missing_options(self.kernel(fragment), {'name': 'x'}), [])

    def test_the_configuration_is_found_in_the_image(self):
        inner = b'code' * 100 + b'IKCFG_ST' + gzip.compress(b'CONFIG_PCI=y\n') + b'IKCFG_ED'
        for image in (inner, b'setup' + gzip.compress(inner) + b'tail',
                      b'setup' + lzma.compress(inner) + b'tail'):
            with tempfile.NamedTemporaryFile() as file:
                file.write(image)
                file.flush()
                self.assertEqual(kernel.embedded_config(file.name), 'CONFIG_PCI=y\n')
        with tempfile.NamedTemporaryFile() as file:
            file.write(zlib.compress(b'nothing'))
            file.flush()
            self.assertIsNone(kernel.embedded_config(file.name))


class Compare(unittest.TestCase):
    def boot(self, *samples):
        return {'v': {'phases': {'map': {'samples_ns': list(samples)}, 'mmap': None,
                                 'unmap': None, 'munmap': None}}}

    def cell(self, a, b):
        compare = script('compare')
        (_, cells), = compare.compare([self.boot(*a)], [self.boot(*b)])
        return compare.cell(*cells['map'])

    def test_the_first_round_is_left_out(self):
        self.assertEqual(self.cell((9999, 100, 101), (1, 100, 101)), ('1.000 ', False))

    def test_bands_apart_and_more_than_2_percent_differ(self):
        self.assertEqual(self.cell((0, 100, 102), (0, 200, 204)), ('2.000*', True))
        self.assertEqual(self.cell((0, 100, 100), (0, 101, 101)), ('1.010 ', False))

    def test_bands_that_meet_do_not(self):
        self.assertEqual(self.cell((0, 100, 300), (0, 250, 350)), ('1.500~', False))


class Statuses(unittest.TestCase):
    def run_lab(self, *arguments):
        done = subprocess.run([os.path.join(LAB, 'run'), *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=False)
        return done.returncode, done.stderr

    def test_bad_input_is_2_and_names_what_there_is(self):
        for arguments, text in ((('--kernel', '0.99'), 'say one of 6.12, 7.3'),
                                (('--job', 'nothing'), 'say one of bar, bench'),
                                (('--kernel', './nothing'), 'there is no kernel image')):
            code, said = self.run_lab(*arguments)
            self.assertEqual(code, 2)
            self.assertIn(text, said)


if __name__ == '__main__':
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    cases = [case for group in suite for case in group]
    print(f'TAP version 13\n1..{len(cases)}')
    failed = 0
    for number, case in enumerate(cases, 1):
        result = unittest.TestResult()
        case.run(result)
        trouble = result.failures + result.errors
        failed += bool(trouble)
        print(f'{"not ok" if trouble else "ok"} {number} - {case.id().split(".", 1)[1]}')
        for _, text in trouble:
            print('\n'.join('# ' + line for line in text.splitlines()))
    sys.exit(1 if failed else 0)
