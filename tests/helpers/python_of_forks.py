# The command `python` of jobs: lets the server at SERVER run a script, and is the usual Python for
# all else. What stands before this text names the interpreter and SERVER.
import json
import os
import signal
import socket
import sys

_, *arguments = sys.argv
if not (arguments and arguments[0].endswith(".py")):
    os.execv(sys.executable, [sys.executable, *arguments])
asked = {"folder": os.getcwd(), "arguments": arguments, "environment": dict(os.environ)}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(SERVER)  # noqa: F821
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: connection.sendall(bytes([number])))
    socket.send_fds(connection, [b"f"], [0, 1, 2])
    connection.sendall(json.dumps(asked).encode() + b"\n")
    status = int(connection.makefile().read() or 1)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
