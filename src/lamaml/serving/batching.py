"""Questions of many connections, answered together: up to 32 rows cost as much as one."""

import asyncio
from collections.abc import Callable, Sequence

from lamaml.serving.answers import Answer, Question


class Batcher:
    """Collects the questions of one turn of the event loop, and answers them in the next.

    Args:
      compute: answers questions.
    """

    def __init__(self, compute: Callable[[Sequence[Question]], list[Answer]]) -> None:
        self._compute = compute
        self._waiting: list[tuple[Question, asyncio.Future[Answer]]] = []

    async def ask(self, question: Question) -> Answer:
        """Return the answer to a question."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((question, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._answer_all)
        return await future

    def _answer_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            answers = self._compute([question for question, _ in waiting])
        except Exception as error:  # noqa: BLE001  (each of them must hear of it)
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), found in zip(waiting, answers, strict=True):
            if not future.done():  # its client has gone
                future.set_result(found)
