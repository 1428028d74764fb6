"""The class path: cached manifest, repositories, certificates, failures of the resolver."""

import os
from pathlib import Path

import pytest

from edgeway.embedded import EmbeddedKafkaError
from edgeway.embedded.jars import Jars, cache_folder, cached, jars, manifest_file
from edgeway.embedded.maven import certificate_bundle, covers_central, mirror_url, repositories

SETTINGS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>
<mirror><id>a</id><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror>
<mirror><id>b</id><mirrorOf>*,!central</mirrorOf><url>https://b.invalid/maven</url></mirror>
<mirror><id>c</id><mirrorOf>central</mirrorOf><url>https://${env.MIRROR}/maven/</url></mirror>
</mirrors></settings>"""


def _manifest(folder: Path) -> Path:
    jar = folder / "a.jar"
    jar.write_bytes(b"jar")
    manifest_file(folder, "9.9").write_text(Jars("9.9", {str(jar): 3}, b"features").to_json())
    return jar


def test_the_manifest_is_used_while_its_jars_are_there(tmp_path: Path) -> None:
    jar = _manifest(tmp_path)
    assert cached(tmp_path, "9.9") == Jars("9.9", {str(jar): 3}, b"features")
    jar.write_bytes(b"ja")
    assert cached(tmp_path, "9.9") is None
    jar.unlink()
    assert cached(tmp_path, "9.9") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"jars": {}, "bootstrap_checkpoint": ""}', '{"jars": 3}'])
def test_a_damaged_manifest_counts_as_none(tmp_path: Path, text: str) -> None:
    manifest_file(tmp_path, "9.9").write_text(text)
    assert cached(tmp_path, "9.9") is None


def test_a_cached_class_path_asks_nobody(tmp_path: Path) -> None:
    jar = _manifest(tmp_path)
    found = jars(tmp_path, "9.9", Path("/no/java"), timeout=0.0, stopped=lambda: True)
    assert found.paths == [str(jar)]


def test_an_unreachable_repository_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWAY_MAVEN_URL", "http://127.0.0.1:9/maven")
    with pytest.raises(EmbeddedKafkaError, match="EDGEWAY_MAVEN_URL"):
        jars(tmp_path, "0.0.1", Path("/no/java"), timeout=60.0)
    assert not list(tmp_path.glob("fetch-*"))


def test_a_fetch_can_be_given_up(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedKafkaError, match="given up"):
        jars(tmp_path, "0.0.1", Path("/no/java"), timeout=60.0, stopped=lambda: True)


def test_the_cache_folder_follows_the_environment() -> None:
    home = Path("/h")
    assert cache_folder({}, home) == Path("/h/.cache/edgeway")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}, home) == Path("/x/edgeway")
    assert cache_folder({"XDG_CACHE_HOME": "/x", "EDGEWAY_CACHE_DIR": "/e"}, home) == Path("/e")


@pytest.mark.parametrize(
    ("mirror_of", "covers"),
    [
        ("*", True),
        ("central", True),
        ("a, central", True),
        ("external:*", True),
        ("external:http:*", False),
        ("*,!central", False),
        ("a", False),
        ("", False),
    ],
)
def test_which_mirrors_serve_central(mirror_of: str, covers: bool) -> None:
    assert covers_central(mirror_of) is covers


def test_the_mirror_of_the_users_settings_is_found() -> None:
    assert mirror_url(SETTINGS, {"MIRROR": "c.invalid"}) == "https://c.invalid/maven"
    assert mirror_url("<settings/>", {}) is None
    with pytest.raises(EmbeddedKafkaError, match="well-formed"):
        mirror_url("<settings>", {})


def test_repositories_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "settings.xml"
    default = "https://d.invalid"
    assert repositories({}, file, {}, default) == {"central": default}
    file.write_text(SETTINGS)
    assert repositories({"MIRROR": "c.invalid"}, file, {"x": "y"}, default) == {
        "central": "https://c.invalid/maven",
        "x": "y",
    }
    assert repositories({}, file, {"central": "https://j.invalid"}, default)["central"] == "https://j.invalid"
    chosen = {"EDGEWAY_MAVEN_URL": "https://e.invalid/"}
    assert repositories(chosen, file, {"central": "z"}, default)["central"] == "https://e.invalid"


def test_certificates_of_the_other_clients_are_used(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("")
    assert certificate_bundle({"SSL_CERT_FILE": str(bundle)}) == str(bundle)
    assert certificate_bundle({"PIP_CERT": str(bundle)}) == str(bundle)
    assert certificate_bundle({"REQUESTS_CA_BUNDLE": os.devnull, "PIP_CERT": str(bundle)}) is None
