"""`abx mcp deploy`: write the artefact, say what is left to do by hand.

It calls no platform.

Source: seed 001, part 7; checklist 186 to 188, 208, 209.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cloche_cli import artefact
from cloche_cli.deployment import KEY_VARIABLE, Deployment, DeployOptions, resolve
from cloche_cli.exit_status import OK
from cloche_cli.invocation import Invocation, current
from cloche_cli.own_files import own_text, refuse_foreign, stamped, write_all
from cloche_sdk import load_settings

_FIELD = "--output-dir"


@dataclass(frozen=True)
class Written:
    """The files of one run, by where they go, and which of them holds the secrets."""

    folder: Path
    files: Mapping[str, str]
    secrets: Path
    secrets_text: str

    def paths(self) -> Mapping[str, Path]:
        """Every file, by the name that a person is shown."""
        return {**{name: self.folder / name for name in self.files}, self.secrets.name: self.secrets}

    def write(self) -> None:
        """Write all of them, the secrets for their owner alone.

        Raises:
            Refused: one is there and not ours, or cannot be written.
        """
        refuse_foreign(self.paths(), _FIELD)
        contents = {self.folder / name: stamped(text) for name, text in self.files.items()}
        write_all({self.secrets: stamped(self.secrets_text), **contents}, {self.secrets: 0o600}, _FIELD)


def deploy(options: DeployOptions, output_dir: str, target: str, *, dry_run: bool) -> int:
    """Write the artefact, or show it, and print the steps.

    Raises:
        ConfigurationInvalid: a setting cannot be used.
        Refused: an option cannot be used, or a file is there and not ours.
    """
    folder = Path(output_dir)
    if folder.name in ("", ".."):  # "." and its like: the file beside it must not be in it
        folder = folder.resolve()
    secrets = folder.with_name(f"{folder.name}.env")
    deployment = resolve(options, load_settings(), os.environ, earlier_token=_earlier_token(secrets))
    files = dict(artefact.files(deployment))
    if target == "docker":
        files.update(artefact.image_recipe(deployment, secrets.name))
        deployment = replace(deployment, nameless_host="<HOST_OF_THE_PROXY>")
    written = Written(folder, files, secrets, artefact.secrets_text(deployment))
    if dry_run:
        refuse_foreign(written.paths(), _FIELD)
    else:
        written.write()
    steps = _steps(deployment, written, target)
    invocation = current()
    if invocation.json:
        invocation.emit(_document(deployment, written, steps, dry_run=dry_run))
    else:
        _tell(invocation, deployment, written, steps, dry_run=dry_run)
    return OK


def _earlier_token(secrets: Path) -> str | None:
    try:
        text = own_text(secrets)
    except OSError:
        return None  # refused before anything is written
    return None if text is None else artefact.token_in(text)


def _steps(deployment: Deployment, written: Written, target: str) -> Sequence[str]:
    """What somebody does by hand, in order."""
    secrets = written.secrets
    if target == "docker":
        compose = written.folder / "compose.yaml"
        return (
            f"Build and start the image: docker compose --file {compose} up --build",
            f"Put a proxy with TLS in front of http://127.0.0.1:{artefact.PORT}/mcp, which passes Mcp-Session-Id on.",
        )
    create = (
        f"Create the function {deployment.name} in {deployment.region}, by the console or the SDK of the platform, as "
        f"config.yaml says: runtime python3.10, handler app.app, {deployment.memory_mb} MB, {deployment.timeout_s} s. "
        f"Set its environment variables; those that are secret have their values in {secrets}."
    )
    return (
        f"Package the artifact: in {written.folder}, {artefact.PACKAGE}",
        create,
        f"Create an HTTP trigger for POST, GET and DELETE. Clients connect to {deployment.url}.",
        "Enable session affinity by the header Mcp-Session-Id, if the platform supports it."
        if deployment.session_affinity
        else "Keep the function to one instance: session affinity is off, and a session lives in one process.",
        f"Anywhere else: pip install -r requirements.txt, then {artefact.START}, with the same variables.",
    )


def _document(deployment: Deployment, written: Written, steps: Sequence[str], *, dry_run: bool) -> Mapping[str, Any]:
    return {
        "output_dir": str(written.folder),
        "files": sorted(written.files),
        "secrets_file": str(written.secrets),
        "written": not dry_run,
        "function_name": deployment.name,
        "region": deployment.region,
        "url": deployment.url,
        "token": {"masked": deployment.token.masked, "source": deployment.token.source},
        "api_key_configured": deployment.api_key is not None,
        "steps": list(steps),
        "client_config": artefact.client_config(deployment),
        **({"contents": dict(written.files)} if dry_run else {}),
    }


def _tell(
    invocation: Invocation, deployment: Deployment, written: Written, steps: Sequence[str], *, dry_run: bool
) -> None:
    verb = "Would write" if dry_run else "Wrote"
    token = deployment.token
    lines = [
        f"{verb} {written.folder}: {', '.join(sorted(written.files))}",
        f"{verb} {written.secrets}: {', '.join(deployment.secret_variables)} (for your eyes; not part of the artifact)",
        f"Bearer token: {token.masked} ({token.source})",
        "",
    ]
    if dry_run:
        for name, text in written.files.items():
            lines += [f"--- {written.folder / name}", text]
    if deployment.api_key is None:
        lines += [f"{KEY_VARIABLE} is not set: without it the server has the sandboxes of its own machine only.", ""]
    lines += ["Nothing is deployed yet. By hand:"]
    lines += [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
    lines += ["", f"Client configuration; put the token of {written.secrets} in its place:"]
    invocation.write("\n".join(lines) + "\n")
    invocation.emit(artefact.client_config(deployment))
