"""Errors that a publisher sends to its client, as PostgreSQL does: severity, SQLSTATE, message, detail and hint."""

from pgoutput_construct.wire.connection_messages import ErrorResponse, NoticeField, NoticeResponse

__all__ = ["Refusal", "error_response", "no_copies", "warning"]


class Refusal(Exception):  # noqa: N818 - it refuses a client's command, nothing has failed here
    """An error that a client is sent instead of the result of its command."""

    def __init__(self, sqlstate: str, message: str, *, detail: str = "", hint: str = "", fatal: bool = False) -> None:
        """Refuse a command.

        Args:
            sqlstate: The code, from PostgreSQL's appendix "PostgreSQL Error Codes".
            message: What is wrong.
            detail: More about it.
            hint: What to do.
            fatal: Whether it ends the connection.
        """
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.fatal = fatal


def no_copies(refused: str) -> Refusal:
    """Return the refusal of a command that serves table copies; ``refused`` says what is not available."""
    hint = "The stream begins with all rows: capture without --snapshot, or subscribe WITH (copy_data = false)."
    return Refusal("0A000", f"{refused}: this publisher serves a stream, and has no tables", hint=hint)


def error_response(refusal: Refusal) -> ErrorResponse:
    """Return the message with a refusal."""
    return ErrorResponse(_fields("FATAL" if refusal.fatal else "ERROR", refusal))


def warning(problem: Refusal) -> NoticeResponse:
    """Return the message with a warning."""
    return NoticeResponse(_fields("WARNING", problem))


def _fields(severity: str, problem: Refusal) -> tuple[NoticeField, ...]:
    texts = {"S": severity, "V": severity, "C": problem.sqlstate, "M": problem.message}
    texts |= {code: text for code, text in (("D", problem.detail), ("H", problem.hint)) if text}
    return tuple(NoticeField(code, text) for code, text in texts.items())
