"""Makes a story that fails smaller: fewer commands, nodes, configs and rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

from tests.random_projects.project import Node, Step, Story

T = TypeVar("T")

_LEFT_AS_THEY_ARE: Final = frozenset({"name", "kind", "query", "strategy", "key"})


def shrink(story: Story, fails: Callable[[Story], bool], seconds: float) -> Story:
    """The smallest story that was found in that time and still fails."""
    until = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(story):
            if time.monotonic() > until:
                return story
            if fails(candidate):
                story, smaller = candidate, True
                break
    return story


def candidates(story: Story) -> Iterator[Story]:
    """Smaller stories, the smallest first."""
    for number in range(len(story.steps) - 1, 0, -1):
        yield _without_step(story, number)
    for node in reversed(story.nodes):
        if not any(node.name in each.above for each in _all_versions(story)):
            yield _without_node(story, node.name)
    for step in story.steps:
        for name in step.nodes:
            yield _with(story, step, replace(step, nodes=_omit(step.nodes, name)))
    for node in story.nodes:
        yield from _plainer(story, node)
    for step in story.steps:
        for name, rows in step.rows.items():
            half = len(rows) // 2
            for some in (rows[:half], rows[half:]):
                if len(some) < len(rows):
                    yield _with(story, step, replace(step, rows={**step.rows, name: some}))


def _all_versions(story: Story) -> Iterator[Node]:
    yield from story.nodes
    for step in story.steps:
        yield from step.nodes.values()


def _without_step(story: Story, number: int) -> Story:
    """Without a step, whose changes the next step makes."""
    gone, steps = story.steps[number], list(story.steps)
    del steps[number]
    if number < len(steps):
        following = steps[number]
        steps[number] = replace(
            following, rows={**gone.rows, **following.rows}, nodes={**gone.nodes, **following.nodes}
        )
    return replace(story, steps=tuple(steps))


def _without_node(story: Story, name: str) -> Story:
    steps = []
    for step in story.steps:
        select = tuple(word for word in step.select if word.strip("+") != name)
        if step.select and not select:
            select = tuple(node.name for node in story.nodes if node.name != name)[:1]
        steps.append(replace(step, rows=_omit(step.rows, name), nodes=_omit(step.nodes, name), select=select))
    return replace(story, nodes=tuple(node for node in story.nodes if node.name != name), steps=tuple(steps))


def _plainer(story: Story, node: Node) -> Iterator[Story]:
    """A node, and all its later versions, with the default of a config."""
    for each in fields(Node):
        if each.name in _LEFT_AS_THEY_ARE or getattr(node, each.name) == each.default:
            continue
        if (node.strategy, each.name) in (("replace_where", "predicate"), ("insert_overwrite", "partition_by")):
            continue
        plain: dict[str, Any] = {each.name: each.default}
        nodes = tuple(replace(other, **plain) if other.name == node.name else other for other in story.nodes)
        steps = tuple(
            replace(step, nodes={**step.nodes, node.name: replace(step.nodes[node.name], **plain)})
            if node.name in step.nodes
            else step
            for step in story.steps
        )
        yield replace(story, nodes=nodes, steps=steps)


def _with(story: Story, old: Step, new: Step) -> Story:
    return replace(story, steps=tuple(new if step is old else step for step in story.steps))


def _omit(some: Mapping[str, T], name: str) -> dict[str, T]:
    return {key: value for key, value in some.items() if key != name}
