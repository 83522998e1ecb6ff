"""Models on the Hugging Face Hub: files come from one commit, few and small enough, or not at all.

Why not `huggingface_hub.PyTorchModelHubMixin`: where model.safetensors is missing it unpickles pytorch_model.bin, it
takes tensors that do not fit the network unless told otherwise, and it writes float32 and a card of its own.
"""

import threading
from contextlib import suppress
from pathlib import Path

from capsnet.errors import ModelError

CONFIG, TENSORS, POSES = "config.json", "model.safetensors", "poses.json"
NEEDED, MEASURED = (CONFIG, TENSORS), (POSES,)
ALL = (*NEEDED, *MEASURED, "training.json", "metrics.json", "README.md")  # what a model's folder holds
LARGEST = {CONFIG: 1_000_000, TENSORS: 500_000_000, POSES: 10_000_000}  # bytes
PATIENCE = 3  # seconds that the Hub may take to answer before the cache is asked


def download(repo: str, revision: str | None = None) -> Path:
    """The folder of a model on the Hub, in the local cache, which is asked alone where the Hub does not answer.

    revision: branch, tag or commit. Raises ModelError.
    """
    offline = not _reachable()
    try:
        # What a branch points to may change in between: the other files are those of the same commit.
        folder = Path(_fetch(repo, CONFIG, revision, offline)).parent
        _fetch(repo, TENSORS, folder.name, offline)
        _fetch_if_there(repo, POSES, folder.name, offline)
    except ModelError:
        raise
    except Exception as error:  # no such repository, no access…: the reader needs the cause in one line
        cause = str(error).strip().split("\n")[0]
        where = "is not in the cache, and the Hugging Face Hub cannot be reached"
        where = where if offline else f"is no folder here, and the Hugging Face Hub did not give it ({cause})"
        raise ModelError(f"{repo!r} {where}; check the name and the network, or name a folder.") from None
    return folder


def upload(folder: Path, repo: str, private: bool = False, message: str = "A trained model") -> str:
    """Put the files of a model's folder into the repository, which is made where there is none; returns the commit.

    Signs in as `hf auth login` has, or with HF_TOKEN. Raises ModelError.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        return api.upload_folder(repo_id=repo, folder_path=folder, allow_patterns=list(ALL), commit_message=message).oid
    except Exception as error:
        cause = str(error).strip().split("\n")[0]
        advice = "check the name, the network and `hf auth login`"
        raise ModelError(f"{repo!r} could not be put on the Hugging Face Hub ({cause}); {advice}.") from None


def _reachable() -> bool:
    """Whether the Hub answers at all. Its client tries for half a minute, and to look up a name takes what it takes."""
    from huggingface_hub import constants, get_session

    found = []

    def ask():
        with suppress(Exception):
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
            found.append(True)

    if constants.HF_HUB_OFFLINE:
        return False
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE + 1)
    return bool(found)


def _fetch(repo: str, name: str, revision: str | None, offline: bool) -> str:
    """A file's path in the cache. Its size is asked first: what it holds is not ours to trust."""
    from huggingface_hub import hf_hub_download

    if not offline:
        size = hf_hub_download(repo, name, revision=revision, dry_run=True).file_size
        if size is None:
            raise ModelError(f"the Hugging Face Hub does not say how many bytes {name} of {repo!r} has.")
        if size > LARGEST[name]:
            raise ModelError(f"{name} of {repo!r} has {size:,} bytes, too many for a model of this package.")
    return hf_hub_download(repo, name, revision=revision, local_files_only=offline)


def _fetch_if_there(repo: str, name: str, revision: str, offline: bool) -> None:
    from huggingface_hub.errors import EntryNotFoundError

    with suppress(EntryNotFoundError):  # not every model has it; in the cache that is the same error
        _fetch(repo, name, revision, offline)
