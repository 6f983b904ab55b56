"""What users hand in is data: it is not run, not unpickled, not written to places it names."""

from __future__ import annotations

import ast
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from helpers_names import EGAL, IMPROVING

import gym_fairbandits
from gym_fairbandits import arms, curves
from gym_fairbandits.__main__ import main
from gym_fairbandits.datasets import google_cluster, movielens

PACKAGE = Path(gym_fairbandits.__file__).parent
SOURCES = sorted({path.resolve() for path in PACKAGE.rglob("*.py")})

# Calls that run, unpickle or unpack what they are given; a dotted name by its last part.
DANGEROUS = {
    "eval",
    "exec",
    "__import__",
    "system",
    "popen",
    "Popen",
    "check_output",
    "check_call",
    "getoutput",
    "spawnl",
    "load_module",
    "Unpickler",
    "read_pickle",
    "unsafe_load",
    "full_load",
    "extract",
    "extractall",
    "unpack_archive",
    "literal_eval",
}
UNPICKLERS = {"pickle", "cloudpickle", "joblib", "marshal", "shelve", "dill", "yaml", "np", "torch"}
# What is unpickled: by whom, and why that is no user's data.
EXPECTED = {
    ("_running.py", "pickle.loads"),  # an error that was pickled on the same line
}


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield every call as ``(dotted name, last part)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            yield name, name.rsplit(".", 1)[-1]


def suspicious(source: str) -> set[str]:
    """Return the dangerous calls in ``source``."""
    found = set()
    for name, last in calls(ast.parse(source)):
        module = name.split(".", 1)[0]
        if last in DANGEROUS or name == "compile" or name.startswith("subprocess."):
            found.add(name)
        if last in ("load", "loads") and module in UNPICKLERS:
            found.add(name)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "pickle.load(file)",
        "np.load(file, allow_pickle=True)",
        "archive.extractall(folder)",
        "yaml.load(text)",
    ],
)
def test_the_search_finds_what_it_looks_for(source: str) -> None:
    assert len(suspicious(source)) == 1


def test_nothing_is_evaluated_unpickled_extracted_or_given_to_a_shell() -> None:
    assert len(SOURCES) > 60
    found = {
        (path.name, name)
        for path in SOURCES
        for name in suspicious(path.read_text(encoding="utf-8"))
    }
    assert found == EXPECTED


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def test_a_pickle_in_the_place_of_data_is_not_loaded(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    target = tmp_path / "was_here"
    payload = pickle.dumps(Bomb(target))
    for name in ("ratings.csv", "ratings.dat", "u.data", "usage.parquet", "usage.json.gz"):
        file = tmp_path / name
        file.write_bytes(payload)
        for read in (movielens, google_cluster):
            with pytest.raises((ValueError, FileNotFoundError)):
                read(file)
        file.unlink()
    assert not target.exists()
    pickle.loads(payload)
    assert target.exists()


def test_members_of_a_zip_are_not_written_wherever_they_point(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    home = tmp_path / "home"
    home.mkdir()
    rows = "userId,movieId,rating,timestamp\n" + "".join(f"{u},1,3.0,0\n" for u in range(9))
    names = [f"{tmp_path}/absolute/ratings.csv", "c:\\ratings.csv", "../../outside/ratings.csv"]
    for number, name in enumerate(names):
        archive = home / f"{number}.zip"
        with ZipFile(archive, "w") as packed:
            packed.writestr(name, rows)
        if name.startswith("."):  # hidden files are not looked at
            with pytest.raises(ValueError, match="must hold one file of ratings"):
                movielens(archive, num_arms=1)
        else:
            assert movielens(archive, num_arms=1).rows == 9
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["0.zip", "1.zip", "2.zip", "home"]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('pathlib').Path('was_here').touch()",
        "$(touch was_here)",
        "`touch was_here`",
        "; touch was_here",
        "!!python/object/apply:os.system ['touch was_here']",
    ],
)
def test_texts_in_arguments_and_configurations_are_not_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["play", IMPROVING, "--agent", "greedy", f"instance={text}"]) == 2
    assert "`instance` must be one of" in capsys.readouterr().err
    for env_id in (IMPROVING, EGAL):
        with pytest.raises(ValueError, match="`instance` must be one of"):
            gym.make(env_id, instance=text)
        with pytest.raises(ValueError, match="`instance` must be one of"):
            gym.make(env_id, instance={"name": text})
    with pytest.raises(ValueError, match="`family` must be one of"):
        curves.from_dict({"family": text})
    with pytest.raises(ValueError, match="`family` must be one of"):
        arms.from_dict({"family": text})
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    run = ["experiments", "run", "egal-synthetic", "--config", "config.json"]
    assert main(run) == 2
    assert "is not JSON" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_spec_from_json_makes_families_of_the_package_only() -> None:
    spec = gym.make(IMPROVING, instance=[{"family": "constant", "value": 0.5}]).spec
    assert spec is not None
    data = json.loads(spec.to_json())
    data["kwargs"]["instance"][0]["family"] = "builtins.eval"
    with pytest.raises(ValueError, match="`family` must be one of"):
        gym.make(EnvSpec.from_json(json.dumps(data)))
