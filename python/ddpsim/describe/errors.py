"""What a user can mend."""


class DescribeError(Exception):
    """The model cannot be described as it stands; the message is one line and says what to do."""


class OwnFault(DescribeError):
    """ddpsim failed where the model did not."""


def own_fault(problem, where):
    """An exception of ddpsim's own code, which nobody's model is to blame for, in one line."""
    trace = problem.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]
    return OwnFault(f'ddpsim itself fails at {where}, not the model ({file}:{trace.tb_lineno}: '
                    f'{type(problem).__name__}: {first_line(problem)}): please report it')


def first_line(problem):
    """The first line of an exception's text, or its type where it has none."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__
