"""`edgeway token`: a bearer token for a tenant, and its hash for the rules file."""

from __future__ import annotations

import argparse
import json
import re
import secrets

from edgeway.cli.arguments import EPILOG, Subparsers
from edgeway.cli.output import out, out_json, say
from edgeway.errors import Exit, UsageError
from schemas.bounds import TENANT, TENANT_WORDS

BYTES = 32


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    summary = "make a bearer token for a tenant, and its hash for the rules file"
    parser = subparsers.add_parser(
        "token",
        help=summary,
        description=summary[:1].upper() + summary[1:] + ". Nothing is kept: the token is shown once.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("tenant", metavar="TENANT", help="whose token it is")
    parser.add_argument("--json", action="store_true", help="both as a JSON object")
    parser.set_defaults(run=run, settings_of="token")


def run(args: argparse.Namespace) -> int:
    """Print a new token on standard output, and what the rules file needs on standard error."""
    from edgeway.gateway.tenants import hash_of

    if not re.fullmatch(TENANT, args.tenant):
        raise UsageError(f"TENANT has {TENANT_WORDS}")
    token = secrets.token_urlsafe(BYTES)
    digest = hash_of(token)
    if args.json:
        out_json({"tenant": args.tenant, "token": token, "hash": digest})
        return Exit.OK
    out(token)
    say("in the rules file (gateways follow it without a restart):")
    say("  " + json.dumps({"tenants": {args.tenant: {"tokens": [digest]}}}))
    say("callers send:  Authorization: Bearer TOKEN")
    return Exit.OK
