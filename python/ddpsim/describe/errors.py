"""What a user can mend."""


class DescribeError(Exception):
    """The model cannot be described as it stands; the message is one line and says what to do."""


def first_line(problem):
    """The first line of an exception's text, or its type where it has none."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__
