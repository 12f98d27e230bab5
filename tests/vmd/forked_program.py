"""The program as forks of one process that has imported it, since a hundred starts take longer than what is tested.

    python forked_program.py serve SOCKET          import the program, say so in one line, and fork for each request
    python -S forked_program.py run SOCKET ...     run it here: these arguments, this folder, environment and streams
"""

import os
import socket
import sys


def run(path, arguments):
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        request = repr((os.getcwd(), arguments, dict(os.environ))).encode()
        socket.send_fds(server, [len(request).to_bytes(8, "little")], [0, 1, 2])
        server.sendall(request)
        status = int(server.recv(8))
    if status < 0:  # the signal that ended it
        os.kill(os.getpid(), -status)
    os._exit(status)


def serve(path):
    import importlib
    import pkgutil
    import signal

    import vmdpotential

    for module in pkgutil.walk_packages(vmdpotential.__path__, "vmdpotential."):
        if ".cuda" not in module.name:
            importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                answer(client)
            client.close()


def answer(client):
    """Run the program in another process, which may be killed, and tell how it ended."""
    import ast

    from vmdpotential.__main__ import main

    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as request:
        folder, arguments, variables = ast.literal_eval(request.read(int.from_bytes(size, "little")).decode())
    program = os.fork()
    if program == 0:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv[1:] = arguments
        sys.exit(main())
    for stream in streams:
        os.close(stream)
    client.send(str(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])).encode())
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    serve(sys.argv[2])
