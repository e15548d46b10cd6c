"""Fits calls to what the description cannot say: which users exist, which numbers get text
messages, how much room the disk has, and where a deleted file still is."""

import base64
import itertools
import os

import schemathesis
from schemathesis.openapi.checks import UseAfterFree


def basic(user):
    return "Basic " + base64.b64encode(f"{user}:{os.environ['PASSWORD']}".encode()).decode()


ALICE = basic("alice"), "Bearer " + os.environ["BEARER"]
numbers = itertools.count(1)
deleted = set()  # the ids of the user's files that were deleted and not restored since


@schemathesis.hook
def before_call(context, case, kwargs):
    # Each call comes from an address of its own, as if through a proxy: from one address the
    # wrong passwords would soon have to wait.
    n = next(numbers)
    case.headers["X-Forwarded-For"] = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
    call = case.operation.definition.raw.get("operationId")
    good = case.meta is not None and case.meta.generation.mode.is_positive
    if call == "endTokens" and case.headers.get("Authorization") in ALICE:
        case.headers["Authorization"] = basic("bob")  # alice's bearer must last for all other calls
    if call in ("beginUpload", "addToken", "changePassword", "changeFile", "addLinks", "changeLink", "addRequest", "changeRequest") and good:
        case.media_type = "application/json"  # whatever */* has become
    if case.operation.path.startswith("/files/{id}") and good and not str(case.path_parameters.get("id")).isdigit():
        case.path_parameters["id"] = 1  # it was a link's id
    if call in ("addLinks", "changeLink", "changeFile", "addToken") and isinstance(case.body, dict) and good:
        fit_limits(case.body, "1d" if "Link" in call else "5d")  # a link ends with its file
        fit_recipients(case.body)
        if call == "addLinks":
            fit_links(case.body)
    if call in ("addRequest", "changeRequest") and isinstance(case.body, dict) and good:
        fit_limits(case.body)
        for name in "bytes", "files":
            if isinstance(case.body.get(name), float):
                case.body[name] = int(case.body[name])  # as in fit_session
    if call == "beginUpload" and isinstance(case.body, dict):
        fit_session(case.body, good)
    elif call in ("upload", "uploadRaw", "uploadNamed") and good:
        fit_upload(case)


@schemathesis.hook
def after_call(context, case, response):
    call = case.operation.definition.raw.get("operationId")
    if response.status_code == 200 and call == "delete":
        deleted.add(str(case.path_parameters["id"]))
    elif response.status_code == 200 and call == "restore":
        deleted.discard(str(case.path_parameters["id"]))


@schemathesis.hook
def filter_failure(context, failure, case, response):
    call = case.operation.definition.raw.get("operationId")
    if not isinstance(failure, UseAfterFree) or call not in ("file", "fileHead"):
        return True
    elsewhere = case.query.get("area") == "backup" or case.query.get("d")  # d: another user's
    return str(case.path_parameters["id"]) in deleted and not elsewhere


def fit_limits(into, expires="5d"):
    if into.get("expires"):
        into["expires"] = expires  # no later than the service keeps files
    if into.get("password"):
        into["password"] = "open sesame"  # which a header can carry
    if isinstance(into.get("downloads"), float):
        into["downloads"] = int(into["downloads"])  # as in fit_session


def fit_links(body):
    for name in "c", "m":
        if not body.get(name):
            body.pop(name, None)  # an empty one may be a mistake
    if body.get("i") and not body.get("c"):
        body["m"] = body.get("m") or ["u0@example.com"]  # a message needs a recipient


def fit_session(body, good):
    for name in "length", "partSize":  # in JSON Schema 68.0 is an integer, in Go it is not
        if isinstance(body.get(name), float) and good:
            body[name] = int(body[name])
    length = body.get("length")
    if type(length) is int and 1 << 20 < length <= 53687091200000:  # the most in the description
        body["length"] = length % (1 << 20)
    if good:
        body.pop("by", None)  # for guests
        fit_limits(body)
        fit_recipients(body)
        if body.get("i") and not body.get("c"):
            body["m"] = body.get("m") or ["u0@example.com"]  # a message needs a recipient


def fit_upload(case):
    fit_limits(case.query)
    if not case.query.get("expires"):
        case.query.pop("expires", None)  # in JSON an empty one is none, in an address it is a mistake
    fit_recipients(case.query)
    case.headers.pop("Repr-Digest", None)  # it is right for one body alone
    if case.media_type.startswith("multipart/"):  # of */* too, which stands for any other type
        case.media_type, case.body = "multipart/form-data", {"file": b"content"}
        if case.query.get("bundle"):
            case.query.pop("file", None)
    elif not case.path_parameters:
        case.query.pop("bundle", None)
        case.query["file"] = case.query.get("file") or "x"  # without a form it is required


def fit_recipients(into):
    if into.get("d"):
        into["d"] = "bob"
    for name, form in ("c", "+39340{:07}"), ("m", "u{}@example.com"):
        if into.get(name):
            all = into[name] if isinstance(into[name], list) else [into[name]]
            into[name] = [form.format(i) for i in range(min(len(all), 10))]
