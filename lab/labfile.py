# SPDX-License-Identifier: MIT
"""The lab's descriptions (kernels/, machines/, the head of a job) and its one error.

A description is key=value, as a shell would read it: a value in quotes may
have blanks and lines. A line that starts with # is a comment.
"""
import os
import shlex
import subprocess

LAB = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(LAB)
CACHE = os.path.join(ROOT, '.cache', 'lab')

BAD_INPUT = 2  # exit statuses beside the job's own, which is 0 or 1
CANNOT = 3     # a package, QEMU or memory is missing here


class LabError(Exception):
    """One sentence for the user, and the exit status."""

    def __init__(self, text, status=BAD_INPUT):
        super().__init__(text)
        self.status = status


def setup(needs):
    """Install what a set of scripts/setup names, or say what is missing."""
    done = subprocess.run([os.path.join(ROOT, 'scripts', 'setup'), needs], text=True, check=False,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        raise LabError((done.stderr.strip().splitlines() or ['scripts/setup failed'])[-1], CANNOT)


def names(kind):
    """What there is in kernels/, machines/ or jobs/."""
    return sorted(name for name in os.listdir(os.path.join(LAB, kind)) if '.' not in name
                  or os.path.splitext(name)[1] not in ('.config', '.sh'))


def parse(text, keys, where):
    """key=value pairs; keys are those that may occur."""
    values = {}
    for word in shlex.split(text, comments=True):
        key, equals, value = word.partition('=')
        if not equals or key not in keys:
            raise LabError(f'{where}: "{word}" is not one of {", ".join(keys)} with a value')
        values[key] = ' '.join(value.split())
    return values


def read(kind, name, keys):
    """The description kind/name, as a dict with its name in it."""
    path = os.path.join(LAB, kind, name)
    if not os.path.isfile(path):
        raise LabError(f'there is no {name} in lab/{kind}: say one of {", ".join(names(kind))}')
    with open(path, encoding='utf-8') as file:
        values = parse(file.read(), keys, f'lab/{kind}/{name}')
    values['name'] = name
    return values
