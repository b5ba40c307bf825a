"""What a service refuses, as a tree.

LamamlError
├── BadRows (also an InvalidArgument)   rows or labels that cannot be learned; which ones, and why
├── QueueFull                           more rows than may wait to be learned; when to try again
├── NotReady                            nothing has been learned yet, so nothing can be predicted
├── UnknownRequest                      no prediction with this request_id is waiting for a label
├── AlreadyLabelled                     the prediction has its label already
├── TooLate                             the label came after `label_ttl`
└── UnknownVersion                      no such version is stored
"""

from collections.abc import Mapping

from lamaml.errors import InvalidArgument, LamamlError


class BadRows(InvalidArgument):
    """Rows or labels that cannot be learned; nothing of the request was accepted.

    Attributes:
      reasons: the reason for each bad row, by its index in the request.
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        first, reason = next(iter(reasons.items()))
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        super().__init__(f"row {first}: {reason}{more}; nothing of this request was accepted")
        self.reasons = dict(reasons)


class QueueFull(LamamlError):
    """More rows wait to be learned than the configuration allows.

    Attributes:
      retry_after: seconds after which there should be room.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotReady(LamamlError):
    """Nothing has been learned yet."""


class UnknownRequest(LamamlError):
    """No prediction of this request_id is waiting for its label."""


class AlreadyLabelled(LamamlError):
    """A label for this prediction was accepted before."""


class TooLate(LamamlError):
    """The label came after the time for which predictions are kept."""


class UnknownVersion(LamamlError):
    """No version of this number is stored."""
