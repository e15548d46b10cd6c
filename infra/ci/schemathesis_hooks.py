"""Gives each call an address of its own, as if it came through a proxy. From one address
the wrong passwords that schemathesis tries would soon have to wait."""

import itertools

import schemathesis

numbers = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    n = next(numbers)
    case.headers["X-Forwarded-For"] = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
