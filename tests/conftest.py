"""What all tests share: no screen, how many examples hypothesis tries, and the end of workers."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Before pygame is imported: the checker of Gymnasium tries the mode "human" too.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

# The fast profile tries the same examples each time; the thorough one tries new ones, 10^5 over
# the five properties of test_properties.py. HYPOTHESIS_PROFILE chooses.
patient = settings(
    deadline=None,  # a busy machine is no failure
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fast", patient, derandomize=True, max_examples=100)
settings.register_profile("thorough", patient, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture
def loky() -> Iterator[None]:
    """Begin without worker processes, whose paths are older than the test's, and end them after."""
    executors = pytest.importorskip("joblib.externals.loky")
    executors.get_reusable_executor().shutdown(wait=True)
    yield
    executors.get_reusable_executor().shutdown(wait=True)


@pytest.fixture(params=["as it is", "in small blocks", "record by record"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read with pyarrow in one block, in blocks of a few bytes, or in Python."""
    from gym_fairbandits.datasets import _records, _streams

    if request.param == "in small blocks":
        monkeypatch.setattr(_streams, "_BLOCK", 5)
    if request.param == "record by record":
        for name in ("_parsed_text", "_parsed_json", "_parsed_columns"):
            monkeypatch.setattr(_records, name, lambda *arguments: None)
    return str(request.param)
