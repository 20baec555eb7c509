"""The bytes of one step of a conformance case, as ``inspect`` shows them."""

from pgoutput_construct.cli.commands._inspect_picture import Picture
from pgoutput_construct.cli.commands._inspect_rows import Detail, dump
from pgoutput_construct.cli.commands.inspect_command import Context, labels
from pgoutput_construct.conformance.conformance_case import ConformanceCase
from pgoutput_construct.conformance.steps import SendMessage
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.trace import trace

__all__ = ["picture_of"]


def picture_of(case: ConformanceCase, at: int | None) -> Picture | None:
    """Return the message of a step, field by field; None if it sends none.

    Args:
        case: The case.
        at: The index of the step.
    """
    script = case.play.script
    if at is None or not 0 <= at < len(script) or not isinstance(step := script[at], SendMessage):
        return None
    layout = {name: case.options[name] for name in LAYOUT_OPTIONS}
    context = Context()
    for before in (each for each in script[:at] if isinstance(each, SendMessage)):
        described = (payload for name in before.needs for payload in case.play.descriptions[name])
        for payload in (*described, before.payload):
            context.read(payload, layout)  # some are invalid on purpose
    for name in step.needs:
        for payload in case.play.descriptions[name]:
            context.read(payload, layout)
    traced = trace(step.payload, **{**layout, **context.state.parameters})
    names = labels(traced, context.relations)
    title = f"step {at + 1} of {len(script)}: {traced.name or 'no message'}, {len(step.payload):,} bytes at {step.lsn}"
    return Picture(title, list(dump(traced, Detail(False, names))))
