"""Files that ddpsim reads again: how they are written, and the seal on their last line."""
import errno
import os
import stat
import zlib

NOT_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)


def _seal(text):
    text = text.replace('\r', '')
    return f'# {text.count(chr(10))} lines, crc32 {zlib.crc32(text.encode()):08x}'


def sealed(text):
    """`text`, which ends with its line `end: FORMAT`, with a count of its lines and a checksum
    there (scenarios/reader/text/seal.hpp)."""
    return f'{text.rstrip()}  {_seal(text)}\n'


def unsealed(text):
    """`text` without its seal. ValueError, which says why, if the seal does not hold."""
    body, begin, last = text.rstrip().rpartition('\nend: ddpsim.')
    key, comment, seal = last.partition(' #')
    if not begin or not comment:
        return text
    plain = f'{body}{begin}{key.rstrip()}\n'
    if f'#{seal}' != _seal(plain):
        raise ValueError(f'it is not as ddpsim wrote it: its last line says "#{seal[:60]}", and '
                         f'what is here has "{_seal(plain)}"')
    return plain


def _write_in_place(path, data):
    with open(path, 'r+b', buffering=0) as file:
        if hasattr(os, 'posix_fallocate') and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            if data:
                os.posix_fallocate(file.fileno(), 0, len(data))  # a full disk is noticed before
        written = 0
        while written < len(data):
            written += file.write(data[written:])
        file.truncate(len(data))


def _give(file, old):
    """The mode and the owner of the file that is replaced. False: the owner cannot be kept."""
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(file.fileno(), old.st_uid, old.st_gid)
        except OSError:
            return False
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
    return True


def _write_beside(target, data, old):
    """Whole, then renamed. False: that would change whose file it is."""
    part = f'{target}.part-{os.getpid()}'
    try:
        with open(part, 'xb') as file:
            if old and not _give(file, old):
                return False
            file.write(data)
        os.replace(part, target)
        return True
    finally:
        if os.path.exists(part):
            os.remove(part)


def write(path, text):
    """Replaces a file whole: a reader never sees half of it. Its mode and owner stay, a link leads
    where it led, and a file with several names, or that cannot be replaced, is written in place.
    OSError if it cannot be written."""
    target = os.path.realpath(path)
    data = text.encode('utf-8')
    try:
        old = os.stat(target)
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode):  # a pipe, /dev/stdout
        with open(path, 'wb') as file:
            file.write(data)
        return
    if old and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    if not old or old.st_nlink == 1:
        try:
            if _write_beside(target, data, old):
                return
        except OSError as problem:
            if not old or problem.errno not in NOT_BESIDE:
                raise
    _write_in_place(target, data)
