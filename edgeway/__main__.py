"""`python -m edgeway`."""

import sys

from edgeway.cli import main

if __name__ == "__main__":
    sys.exit(main())
