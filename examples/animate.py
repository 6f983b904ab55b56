"""Animate two policies side by side on a late bloomer: writes the README's picture.

Run with the extra `render` installed, and Pillow (Matplotlib and moviepy bring it)::

    python examples/animate.py
    python examples/animate.py --horizon 400 --stride 4 --output play.gif

Greedy pulls what paid best last and never learns what the late bloomer could pay; Algorithm 1 of
Patil et al. gives each arm the pulls that it needs to show its potential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from cli import parse, start
from numpy.typing import NDArray
from PIL import Image

from gym_fairbandits.agents import AnytimeImproving, Greedy
from gym_fairbandits.envs.rendering.picture import draw_pixels
from gym_fairbandits.wrappers import PolicyRegret


@dataclass(frozen=True)
class Arguments:
    """What the command line sets."""

    horizon: int = 200
    stride: int = 2  # steps per frame
    frames_per_second: float = 10
    output: Path = Path("docs/play.gif")


POLICIES = {
    "Greedy pulls the arm that paid best last: the late bloomer never gets its chance": Greedy,
    "Algorithm 1 pulls the late bloomer until it has shown its potential": AnytimeImproving,
}


def frames(title: str, agent: Any, arguments: Arguments) -> list[NDArray[np.uint8]]:
    """Return pictures of an episode, the first and the last step included."""
    env = gym.make(
        "ImprovingBandit-v0",
        instance="early_vs_late",
        horizon=arguments.horizon,
        render_mode="rgb_array",
        render_reveal=True,
    )
    env = PolicyRegret(env)
    pictures = []
    observation, _ = env.reset(seed=0)
    for step in range(arguments.horizon + 1):
        if step:
            observation, *_ = env.step(agent.act(observation))
        if step % arguments.stride == 0 or step == arguments.horizon:
            scene = env.unwrapped.scene()  # type: ignore[attr-defined]
            heading = replace(scene.heading, title=title)
            pictures.append(draw_pixels(replace(scene, heading=heading)))
    env.close()
    return pictures


def main() -> None:
    """Play, and write the animation."""
    arguments = parse(Arguments, __doc__)
    played = [frames(title, policy(), arguments) for title, policy in POLICIES.items()]
    images = [Image.fromarray(np.concatenate(pair)) for pair in zip(*played, strict=True)]
    # One palette for all frames, of the last one: colours must not flicker.
    palette = images[-1].quantize(64, method=Image.Quantize.MAXCOVERAGE)
    images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    still = 1000 / arguments.frames_per_second
    images[0].save(
        arguments.output,
        save_all=True,
        append_images=images[1:],
        duration=[still] * (len(images) - 1) + [3000],  # the end stays, to be read
        loop=0,
    )
    size = arguments.output.stat().st_size
    print(f"Wrote {arguments.output}: {len(images)} frames, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    start(main)
