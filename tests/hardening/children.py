"""Many cases in child processes, each case with a limit of time, and each child with one of memory.

A child that dies is a failure of the case at hand, and the next one goes on behind it.
"""

import argparse
import json
import mmap
import os
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter

CHUNK = 4000  # cases of a child
SECONDS = 20  # of one case
ROOM = 3 << 30  # bytes of address space


def asked_for(about, ways, cases):
    """The command line of a script that tries so many cases by default, of one or of all ways."""
    parser = argparse.ArgumentParser(description=about.split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(ways))
    parser.add_argument("--messages", action="store_true", help="print every kind of refusal and how often it was")
    return parser.parse_args()


def load_all_names(package):
    """Load all names of a package before children are made, and be silent from now on."""
    for name in package.__all__:
        getattr(package, name)
    warnings.simplefilter("ignore")


def words_of(error):
    """What an error says, without the drawn names of folders: one had the letters of "panic"."""
    return re.sub(rf"{tempfile.gettempprefix()}[a-z0-9_]{{8}}", "", str(error))


def ends(total, asked, names):
    """How often each of ``names`` was counted, in words; with ``--messages`` everything that was is printed."""
    if asked.messages:
        for name, n in sorted(total.items(), key=lambda item: -item[1]):
            print(f"{n:8} {name}")
    return ", ".join(f"{total[name]} {name}" for name in names)


class Run:
    """The numbered cases ``first`` to ``first + n``, each given to ``tried(seed, counts)``.

    ``tried`` returns None, or what is wrong; it counts in ``counts`` whatever is worth it.
    """

    def __init__(self, tried, first, n):
        self.tried, self.first, self.end = tried, first, first + n
        self.total, self.deaths = Counter(), []
        self.at = mmap.mmap(-1, 8)

    def run(self):
        """All cases: ``total`` then holds what was counted and the ``failures``, ``deaths`` the cases that killed."""
        while self.first < self.end:
            last = min(self.first + CHUNK, self.end)
            status, counts = self._chunk(self.first, last)
            if status != 0:
                (case,) = struct.unpack("q", self.at[:8])
                print(f"case {case}: the process ended with status {status}", flush=True)
                self.deaths.append(case)
                last = case + 1
            self.total.update(counts)
            self.first = last
        return self

    def _chunk(self, first, last):
        self.at[:8] = struct.pack("q", first)
        with tempfile.TemporaryFile("w+") as file:
            pid = os.fork()
            if pid == 0:
                try:
                    self._child(first, last, file)
                except BaseException:  # a mistake of the script
                    traceback.print_exc()
                    os._exit(1)
                sys.stdout.flush()
                os._exit(0)
            status = self._watched(pid)
            file.seek(0)
            return status, sum((Counter(json.loads(line)) for line in file), Counter())

    def _child(self, first, last, file):
        resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for seed in range(first, last):
            self.at[:8] = struct.pack("q", seed)
            counts = Counter()
            wrong = self.tried(seed, counts)
            if wrong:
                print(f"case {seed}: {wrong}", flush=True)
                counts["failures"] += 1
            file.write(json.dumps(counts) + "\n")
            file.flush()

    def _watched(self, pid):
        """How a child ended; it is killed when a case takes too long."""
        before, since = None, time.monotonic()
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            now = self.at[:8]
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > SECONDS:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
