"""Cycles in the graph of a history, and their names."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from tests.histories.graph import Edge, Why

Graph = Mapping[int, Sequence[Edge]]
"""The edges that leave each transaction."""

_STARTS = 50
"""From how many transactions of a component a shortest cycle is looked for."""


def graph_of(edges: Iterable[Edge]) -> Graph:
    found: dict[int, list[Edge]] = {}
    for edge in edges:
        found.setdefault(edge.before, []).append(edge)
    return found


def components(graph: Graph) -> list[set[int]]:
    """The strongly connected components of more than one transaction."""
    return [component for component in _Tarjan(graph).components() if len(component) > 1]


class _Tarjan:
    """Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972), without recursion."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._index: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._stack: list[int] = []
        self._on_stack: set[int] = set()
        self._work: list[tuple[int, Iterator[Edge]]] = []

    def components(self) -> Iterator[set[int]]:
        for root in self._graph:
            if root not in self._index:
                self._enter(root)
            while self._work:
                node, left = self._work[-1]
                if not self._goes_deeper(node, left):
                    yield from self._leave(node)

    def _enter(self, node: int) -> None:
        self._index[node] = self._low[node] = len(self._index)
        self._stack.append(node)
        self._on_stack.add(node)
        self._work.append((node, iter(self._graph.get(node, ()))))

    def _goes_deeper(self, node: int, left: Iterator[Edge]) -> bool:
        for edge in left:
            if edge.after not in self._index:
                self._enter(edge.after)
                return True
            if edge.after in self._on_stack:
                self._low[node] = min(self._low[node], self._index[edge.after])
        return False

    def _leave(self, node: int) -> Iterator[set[int]]:
        self._work.pop()
        if self._work:
            above = self._work[-1][0]
            self._low[above] = min(self._low[above], self._low[node])
        if self._low[node] == self._index[node]:
            component = {self._stack.pop()}
            while node not in component:
                component.add(self._stack.pop())
            self._on_stack -= component
            yield component


def shortest_cycle(graph: Graph, component: set[int]) -> list[Edge]:
    """A shortest cycle through some transaction of a component."""
    found = [path for start in sorted(component)[:_STARTS] if (path := path_between(graph, start, start, component))]
    return min(found, key=len)


def path_between(graph: Graph, start: int, end: int, within: Container[int]) -> list[Edge]:
    """Returns a shortest path of at least one edge; empty if no path exists."""
    came: dict[int, Edge] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in graph.get(node, ()):
            if edge.after in came or edge.after not in within:
                continue
            came[edge.after] = edge
            if edge.after == end:
                return _back(came, start, end)
            waiting.append(edge.after)
    return []


def _back(came: Mapping[int, Edge], start: int, end: int) -> list[Edge]:
    path = [came[end]]
    while path[-1].before != start:
        path.append(came[path[-1].before])
    return path[::-1]


def name_of(cycle: Sequence[Edge]) -> str:
    """The name of the anomaly that a cycle is (Adya; with an edge of real time, "stale read" or a name of its own)."""
    whys = [edge.why for edge in cycle]
    reads_before = whys.count(Why.READ_WRITE)
    if reads_before > 1:
        return "G2"
    if Why.REAL_TIME in whys:
        return "stale read" if reads_before else "out of real time"
    if reads_before:
        return "lost update" if _is_lost_update(cycle) else "G-single"
    return "G1c" if Why.WRITE_READ in whys else "G0"


def _is_lost_update(cycle: Sequence[Edge]) -> bool:
    """Whether two transactions read the same version of a key, and both wrote the key."""
    return (
        len(cycle) == 2
        and {edge.why for edge in cycle} == {Why.READ_WRITE, Why.WRITE_WRITE}
        and (cycle[0].key == cycle[1].key)
    )
