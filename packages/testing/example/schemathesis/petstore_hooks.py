"""Findings that are no failures, told by the error's code. Everything else that a check finds stays a failure."""

import itertools
import re
import zlib

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode


def impatient(headers, message: str = "") -> bool:
    """Less than a second is taken, though the document asks for more, and the answer may be 504."""
    try:
        return 0 < float(headers.get("X-Server-Timeout", "")) < 1
    except ValueError:
        return False


def unconditional(case) -> bool:
    """A list has conditions only where it is asked for one pet, by its id. Elsewhere it does not look at them."""
    conditions = {"if-match", "if-none-match"}
    named = {name.lower() for name in case.headers or {}}
    judged = getattr(case.meta.phase.data, "parameter", None)
    if judged is not None and judged.lower() not in conditions:
        return False
    return (case.method, case.path) == ("GET", "/pets") and not named.isdisjoint(conditions)


def strict(headers, message: str) -> bool:
    """Members that nobody knows are ignored, so the schemas are open; handling=strict asks to refuse them."""
    return re.search(r"handling\s*=\s*\"?strict", headers.get("Prefer", ""), re.IGNORECASE) is not None


def page_token(headers, message: str) -> bool:
    """Only tokens that a list gave out are valid, which no schema can say."""
    return True


def event_id(headers, message: str) -> bool:
    """Only ids that came with an event are valid, which no schema can say."""
    return "must be the id of an event" in message


def query(headers, message: str) -> bool:
    """Nor can it say that two parameters exclude each other."""
    return event_id(headers, message) or "can't be given together with name" in message


def stock_limit(headers, message: str) -> bool:
    """The largest stock count is 2^31-1 less the units that open orders hold at that moment."""
    return "because open orders hold" in message


# What the check found, the code of the answer -> whether that is what the request asked for.
EXPLAINED = {
    ("RejectedPositiveData", "UNKNOWN_FIELD"): strict,
    ("RejectedPositiveData", "INVALID_PAGE_TOKEN"): page_token,
    ("RejectedPositiveData", "INVALID_QUERY"): query,
    ("RejectedPositiveData", "INVALID_HEADER"): event_id,
    ("RejectedPositiveData", "VALIDATION_FAILED"): stock_limit,
    ("AcceptedNegativeData", "DEADLINE_EXCEEDED"): impatient,
    ("ServerError", "DEADLINE_EXCEEDED"): impatient,
}


@schemathesis.hook
def filter_failure(context, failure: Failure, case, response: Response) -> bool:
    """False drops the failure."""
    kind = type(failure).__name__
    if kind == "AcceptedNegativeData" and response.status_code < 400:
        return not (impatient(response.request.headers) or unconditional(case))
    try:
        record = response.json()
        explains = EXPLAINED.get((kind, record["code"]))
    except (ValueError, KeyError, TypeError):
        return True
    return explains is None or not explains(response.request.headers, record["message"])


@schemathesis.hook
def before_load_schema(context, raw_schema) -> None:
    """Events are described as OpenAPI 3.2 does it, under a name that 3.1 allows. Without it, the schema of the whole text
    would be taken for that of each event."""
    for item in raw_schema["paths"].values():
        for operation in item.values():
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    if "x-itemSchema" in content:
                        content["itemSchema"] = content.pop("x-itemSchema")
                        del content["schema"]


@schemathesis.hook
def before_call(context, case, kwargs) -> None:
    if case.headers and case.meta:
        use_strings(case)
        mend_entity_tags(case)
        leave_out_conditions(case)
        use_keys_once(case)
    if case.path == "/events" and case.meta:
        begin_with_a_snapshot(case)
    if case.query and case.meta:
        ask_for_one_order(case)


def use_strings(case) -> None:
    """Identifiers of earlier answers are put into headers as integers, which can't be sent."""
    for name, value in case.headers.items():
        case.headers[name] = value if isinstance(value, (str, bytes)) else str(value)


def mend_entity_tags(case) -> None:
    """The coverage phase knows letters and digits only in headers; where a pattern needs others, it sends "0"."""
    judged = getattr(case.meta.phase.data, "parameter", None)
    for name, valid in (("If-Match", "*"), ("If-None-Match", '"2"')):
        if case.headers.get(name) == "0" and judged != name:
            case.headers[name] = valid


def leave_out_conditions(case) -> None:
    """Generated conditions seldom hold, for no schema knows revisions. Half of them, told by their text, are left out, so
    that most valid requests reach the record."""
    judged = getattr(case.meta.phase.data, "parameter", None)
    if case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    for name in ("If-Match", "If-None-Match"):
        value = case.headers.get(name)
        if value is not None and judged != name and zlib.crc32(str(value).encode()) % 2:
            del case.headers[name]


def begin_with_a_snapshot(case) -> None:
    """A stream of which nothing is known has nothing to tell, and is read until the time is over. Made-up ids are left out,
    or no valid request would have an answer, and the snapshot has an event at once."""
    judged = getattr(case.meta.phase.data, "parameter", None)
    if case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if judged not in ("lastEventId", "Last-Event-ID"):
        case.query.pop("lastEventId", None)
        case.headers.pop("Last-Event-ID", None)
    if judged != "snapshot":
        case.query["snapshot"] = "true"


def ask_for_one_order(case) -> None:
    """What is found by name has an order of its own. Most valid requests with both would be refused for it."""
    judged = getattr(case.meta.phase.data, "parameter", None)
    if case.meta.generation.mode is GenerationMode.POSITIVE and {"name", "orderBy"} <= case.query.keys():
        del case.query["name" if judged == "orderBy" else "orderBy"]


used = set()
numbers = itertools.count(1)


def use_keys_once(case) -> None:
    """The coverage phase repeats one key with body after body, of which all but the first would be refused as 422."""
    key = case.headers.get("Idempotency-Key")
    if key is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    case.headers["Idempotency-Key"] = f"key-{next(numbers)}" if key in used else key
    used.add(key)
