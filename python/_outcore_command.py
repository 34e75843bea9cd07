"""The command `outcore` of the wheel: becomes the program that lies inside the package.

A module of its own, so that neither the package nor NumPy is loaded for it.
"""

import importlib.util
import os
import sys


def main() -> int:
    package = importlib.util.find_spec("outcore")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        program = os.path.join(folder, "bin", "outcore")
        if os.access(program, os.X_OK):
            os.execv(program, ["outcore", *sys.argv[1:]])
    print("outcore: this wheel was built without the command; build it with `make build`",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
