"""Download of 3Dmol.js for web pages by ``install page``: from npm's registry without npm, checked by its checksum."""

from __future__ import annotations

import os
from pathlib import Path

from vmdpotential.errors import BackendError

from .startup import put_folder

#: Archive of the tested version in npm's registry, and its SHA-512.
ARCHIVE = "https://registry.npmjs.org/3dmol/-/3dmol-2.5.5.tgz"
SHA512 = ("92a347a2e1aaab761f5b9f35ef8b5d111be6d1761398fd2d6af40a3aa230d68b"
          "9cd8e27b7a9917105aed1245575747250594f665edb11d10bfab15f4bb4a8277")

#: Files of the archive that are installed.
_KEPT = ("build/3Dmol-min.js", "LICENSE", "package.json")


def user_folder() -> Path:
    """Return the folder of the user's data for this program."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "vmdpotential"


def download(target: Path) -> None:
    """Download :data:`ARCHIVE` and put 3Dmol.js with its licence into a folder.

    Raises
    ------
    BackendError
        When it cannot be downloaded, or differs from the tested version.
    OutputError
        When the folder cannot be written.
    """
    import hashlib
    import io
    import tarfile
    import urllib.request
    from http.client import HTTPException

    try:
        with urllib.request.urlopen(ARCHIVE, timeout=60) as answer:
            data = answer.read(2**25)
    except (OSError, HTTPException) as error:  # the latter for a broken answer
        raise BackendError(f"{ARCHIVE}: cannot be downloaded ({error or type(error).__name__})",
                           "connect to the network, or copy the npm package 3dmol and name it with {viewer_script}"
                           ) from None
    if hashlib.sha512(data).hexdigest() != SHA512:
        raise BackendError(f"{ARCHIVE}: the file differs from the tested one (SHA-512 {SHA512[:16]}...)",
                           "use npm install 3dmol")
    contents = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for name in _KEPT:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            contents[name] = member.read()
    put_folder(target, contents)
