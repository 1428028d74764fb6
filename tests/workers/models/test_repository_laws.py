"""Any sequence of changes leaves a repository that is whole: what is active is there, and as it was added."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.helpers.models import placed
from workers.errors import RepositoryError
from workers.models.manifest import KEPT
from workers.models.opening import open_store
from workers.models.repository import Repository

VERSIONS = ["1", "1.1", "2", "3", "10"]
a_version = st.sampled_from(VERSIONS)


class Changes(RuleBasedStateMachine):
    """Beside the repository stands what is known of it: the versions, and which was active when."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp())
        self.there: set[str] = set()
        self.history: list[str] = []

    @initialize(folder=st.booleans())
    def begin(self, folder: bool) -> None:
        url = str(self.scratch / "repo") if folder else f"memory://{uuid.uuid4().hex}/repo"
        self.repository = Repository(open_store(url))

    def teardown(self) -> None:
        shutil.rmtree(self.scratch)

    @rule(version=a_version)
    def add(self, version: str) -> None:
        try:
            placed(self.repository, self.scratch, version, {"model.onnx": version.encode() * 9})
        except RepositoryError:
            assert version in self.there
        else:
            assert version not in self.there
            self.there.add(version)

    @rule(version=a_version)
    def activate(self, version: str) -> None:
        try:
            self.repository.activate("m", version)
        except RepositoryError:
            assert version not in self.there
        else:
            self.history = [*(v for v in self.history if v != version), version][-KEPT:]

    @rule()
    def roll_back(self) -> None:
        try:
            found = self.repository.rollback("m")
        except RepositoryError:
            assert len(self.history) < 2 or self.history[-2] not in self.there
        else:
            self.history.pop()
            assert found.version == self.history[-1]

    @rule(keep=st.integers(1, 4))
    def prune(self, keep: int) -> None:
        gone = {each.version for each in self.repository.prune("m", keep)}
        assert gone <= self.there
        self.there -= gone
        if len(self.history) <= keep:
            assert not gone & set(self.history)

    @rule(version=a_version)
    def half_copy(self, version: str) -> None:
        """Somebody begins to copy a version by hand."""
        if version not in self.there:
            self.repository.store.write(f"m/{version}/model.onnx", b"half")

    @invariant()
    def it_is_whole(self) -> None:
        versions = self.repository.versions("m")
        assert versions == [v for v in VERSIONS if v in self.there]
        for version in versions:
            self.repository.verify("m", version)
        active = self.repository.active("m")
        assert (active.version if active else None) == (self.history[-1] if self.history else None)
        assert active is None or active.version in self.there
        assert all(not listed.problem for listed in self.repository.models())


Changes.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestAnyChanges = Changes.TestCase
