"""Runs ministack with two things that it lacks.

The checksum of a whole object of S3 that came in parts. Its own CRC64NVME goes byte
by byte, at about 20 MB/s; AWS's library replaces it.

Patience: the two threads of each idle environment of a function look ten times a
second whether it has ended. Hundreds of them took half a processor.
"""

import queue
from socketserver import BaseServer
from types import SimpleNamespace

from awscrt import checksums
from ministack.app import main
from ministack.core import lambda_runtime
from ministack.services import s3

of_part, of_parts = s3._resolve_part_checksums, s3._composite_checksum


class Sum(str):
    """The checksum of a part, with the part's bytes."""


def with_bytes(body, headers, upload):
    sums, refusal = of_part(body, headers, upload)
    for algorithm in sums:
        sums[algorithm] = Sum(sums[algorithm])
        sums[algorithm].body = body
    return sums, refusal


def of_whole(algorithm, sums):
    if not all(isinstance(s, Sum) for s in sums):
        return of_parts(algorithm, sums)
    return s3._compute_s3_checksum(algorithm, b"".join(s.body for s in sums)) if algorithm else None


s3._resolve_part_checksums, s3._composite_checksum = with_bytes, of_whole
s3._crc64nvme = checksums.crc64nvme


class Queue(queue.Queue):
    """A queue of what a function is to do next."""

    def get(self, block=True, timeout=None):
        return super().get(block, timeout and 60)


serve = BaseServer.serve_forever
BaseServer.serve_forever = lambda server, poll_interval=1: serve(server, 1)
lambda_runtime.queue = SimpleNamespace(Queue=Queue, Empty=queue.Empty, Full=queue.Full)
main()
