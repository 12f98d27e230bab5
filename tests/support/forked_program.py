"""The program as forks of one process that has imported it, since a hundred starts take longer than what is tested.

    python forked_program.py serve SOCKET          import the program, say so in one line, and fork for each request
    python -S forked_program.py run SOCKET ...     run it here: these arguments, this folder, environment and streams

Arguments are those of the program, or of Python: ``-c CODE``, or a script and its arguments. The fixture ``forks``
serves; SOCKET.seconds has what the forks took of a processor. With the variable CHECK_FIGURES, saving a figure whose
texts are too small, cut off or over each other is an error (``drawn_texts``).
"""

import os
import socket
import sys

#: Other packages that commands and examples import.
PACKAGES = ("matplotlib.pyplot", "scipy.spatial", "scipy.interpolate", "MDAnalysis", "MDAnalysisTests.datafiles",
            "openmm.app", "pandas", "biotite.structure.info", "hydride", "skimage.measure")


def write_client(path, place):
    """Write an executable that runs in forks of the process that serves at `place`."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{os.path.abspath(__file__)}" run "{place}" "$@"\n')
    path.chmod(0o700)
    return path


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
    import contextlib
    import gc
    import importlib
    import pkgutil
    import select

    import vmdpotential

    for module in pkgutil.walk_packages(vmdpotential.__path__, "vmdpotential."):
        if ".cuda" not in module.name:
            importlib.import_module(module.name)
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # so that forks do not copy what is only looked through
    forks = set()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        print("ready", flush=True)
        while 0 not in select.select([server, 0], [], [])[0]:  # at the end of its input, the tests have ended
            client, _ = server.accept()
            if (fork := os.fork()) == 0:
                server.close()
                answer(client, path)
            client.close()
            forks = {each for each in forks | {fork} if os.waitpid(each, os.WNOHANG) == (0, 0)}


def answer(client, path):
    """Run the program in another process, which may be killed, and tell how it ended."""
    import ast
    import atexit
    import runpy
    import threading

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
        if variables.get("CHECK_FIGURES"):
            from drawn_texts import check_figures

            check_figures()
        code = 0
        try:
            if arguments[:1] == ["-c"]:
                sys.path.insert(0, "")
                exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
            elif arguments and arguments[0].endswith(".py"):
                sys.argv = arguments
                runpy.run_path(arguments[0], run_name="__main__")
            else:
                code = main()
        except SystemExit as end:
            code = end.code or 0
        # as at the end of any program, except that its objects, which are many, are not deleted one by one
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    for stream in streams:
        os.close(stream)
    _, status, used = os.wait4(program, 0)
    with open(f"{path}.seconds", "a") as file:
        file.write(f"{used.ru_utime + used.ru_stime}\n")
    client.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    serve(sys.argv[2])
