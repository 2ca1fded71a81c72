"""Text for a terminal: what a file, a model or a path says is shown, and never obeyed."""
LONGEST = 3000  # characters of a line; of a longer one the beginning and the end are shown


def one_line(text):
    """`text` with what would move the cursor, change colours or turn the writing around spelled
    out, as ddpsim itself does (model/base/printable.hpp)."""
    text = str(text)
    if len(text) > LONGEST:
        half = (LONGEST - 5) // 2
        text = f'{text[:half]} ... {text[-half:]}'
    return ''.join(letter if letter.isprintable() else
                   letter.encode('unicode_escape', 'replace').decode() for letter in text)
