"""What a user can mend."""


class MeasureError(Exception):
    """The message is one line and says what to do."""


def first_line(problem):
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(problem).__name__
