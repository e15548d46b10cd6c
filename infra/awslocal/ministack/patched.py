"""Runs ministack with two faults mended.

It takes the checksum of an object that came in parts from the checksums of the parts,
where S3 can have that of the whole object. Its own CRC64NVME goes byte by byte, at
about 20 MB/s, so AWS's library replaces it.

It starts two threads for each environment of a function, and both look ten times a
second whether the environment has ended. Hundreds of idle ones took half a processor.
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
    """The requests of an environment. Nothing waits for the end of a thread that waits here."""

    def get(self, block=True, timeout=None):
        return super().get(block, timeout and 60)


serve_forever = BaseServer.serve_forever


def serve_patiently(server, poll_interval=None):
    """Looks once a second for the end, as whoever ends an environment waits for this."""
    serve_forever(server, 1)


lambda_runtime.queue = SimpleNamespace(Queue=Queue, Empty=queue.Empty, Full=queue.Full)
BaseServer.serve_forever = serve_patiently
main()
