#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dmaheap-run in an interactive shell on a terminal: ^C, ^Z, fg, pipes.

usage: terminal.py DMAHEAP_RUN       over the double or the real one
"""
import os
import pty
import select
import shutil
import sys
import time

PATIENCE_S = 60


class Terminal:
    def __init__(self):
        self.seen = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "dumb"
            os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text):
        """Everything up to @text, which must come; the rest is kept."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            left = end - time.monotonic()
            ready, _, _ = select.select([self.fd], [], [], max(left, 0))
            if not ready:
                sys.exit(f"terminal: no {text!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before


COUNTER = """
import signal, time
n = 0
def count(number, frame):
    global n
    n += 1
signal.signal(signal.SIGINT, count)
print("counter" + "-up", flush=True)
while n == 0:
    time.sleep(0.01)
time.sleep(0.3)
print("counted", n, flush=True)
"""


def main():
    run = sys.argv[1]
    if not shutil.which("bash"):
        print("skipped: no bash")
        sys.exit(77)
    t = Terminal()
    t.send("PS1='' PS2=''; stty -echo; set +m; set -m; echo shell-$((40 + 2))\n")
    t.wait_for("shell-42")

    # The terminal's ^C reaches the program once.
    counter = f"/tmp/dmaheap-terminal-{os.getpid()}.py"
    with open(counter, "w", encoding="utf-8") as file:
        file.write(COUNTER)
    t.send(f"{run} {sys.executable} {counter}\n")
    t.wait_for("counter-up")
    t.send("\x03")
    t.wait_for("counted 1")
    os.unlink(counter)

    # ^Z stops the job, fg continues it, ^C ends it by the signal.
    t.send(f"{run} sh -c 'echo now-$((1 + 1)); exec sleep 60'\n")
    t.wait_for("now-2")
    t.send("\x1a")
    t.wait_for("Stopped")
    t.send("fg\n")
    t.wait_for("sleep 60")
    time.sleep(1)
    t.send("\x03")
    time.sleep(1)
    t.send("echo status-$?\n")
    t.wait_for("status-130")

    # A pipe's end is seen, and what was typed goes through.
    t.send(f"{run} cat | cat; echo piped-$?\n")
    t.send("through\n\x04")
    t.wait_for("through")
    t.wait_for("piped-0")

    # A background job that reads stops; in the foreground it reads on.
    t.send(f"{run} cat &\n")
    t.send("until jobs | grep Stopped; do sleep 0.1; done\n")
    t.wait_for("Stopped")
    t.send("fg\n")
    time.sleep(1)
    t.send("typed\n")
    t.wait_for("typed")
    t.send("\x04")
    t.send("echo left-$(jobs | wc -l)\n")
    t.wait_for("left-0")
    t.send("exit\n")
    print("terminal: ok")


main()
