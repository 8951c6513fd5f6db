"""Reads draws.nc with numpy alone: the part of HDF5 that sterna writes, and no more.

Groups keep their members as links in their header, datasets lie in chunks, deflated and perhaps shuffled, which a fixed
or an extensible array lists. Anything else, as groups of many members, is refused by name. With h5py at hand nothing of this
is used.
"""

import pathlib
import zlib

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

LINK, SPACE, TYPE, LAYOUT, FILTERS, MORE = 0x06, 0x01, 0x03, 0x08, 0x0B, 0x10
DEFLATE, SHUFFLE = 1, 2
NOWHERE = 2**64 - 1


class File:
    """A file in memory, by paths of groups and datasets."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        if self.bytes[:8] != b"\x89HDF\r\n\x1a\n" or self.bytes[8] not in (2, 3):
            raise ValueError("not HDF5 of a kind that is read here")
        self.root = self.number(36, 8)

    def number(self, at, size):
        return int.from_bytes(self.bytes[at : at + size], "little")

    def messages(self, at):
        """(type, where its body begins) of an object header, its continuations followed."""
        if self.bytes[at : at + 4] != b"OHDR":
            raise ValueError("an object header was expected")
        flags = self.bytes[at + 5]
        start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        blocks = [(start + width, start + width + self.number(start, width))]
        while blocks:
            at, end = blocks.pop(0)
            while at + 4 <= end:
                kind, size = self.bytes[at], self.number(at + 1, 2)
                body = at + 4 + (2 if flags & 4 else 0)
                if kind == MORE:
                    offset, length = self.number(body, 8), self.number(body + 8, 8)
                    blocks.append((offset + 4, offset + length - 4))
                yield kind, body
                at = body + size

    def members(self, at):
        """Names in a group, with where they lie."""
        return dict(self.link(body) for kind, body in self.messages(at) if kind == LINK)

    def link(self, at):
        flags = self.bytes[at + 1]
        at += 2 + (1 if flags & 8 else 0) + (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
        width = 1 << (flags & 3)
        length = self.number(at, width)
        name = self.bytes[at + width : at + width + length].decode()
        return name, self.number(at + width + length, 8)

    def dataset(self, at):
        """The numbers of a dataset; None where it has none that are read here."""
        parts = dict(self.messages(at))
        if SPACE not in parts or LAYOUT not in parts:
            return None
        shape, kind = self.shape(parts[SPACE]), self.kind(parts[TYPE])
        return None if kind is None else self.chunked(parts[LAYOUT], shape, kind, self.filters(parts.get(FILTERS)))

    def shape(self, at):
        rank = self.bytes[at + 1]
        at += 4 if self.bytes[at] == 2 else 8
        return tuple(self.number(at + 8 * i, 8) for i in range(rank))

    def kind(self, at):
        kinds = {0: "i", 1: "f"}
        kind, size = self.bytes[at] & 15, self.number(at + 4, 4)
        return np.dtype(f"<{kinds[kind]}{size}") if kind in kinds else None

    def filters(self, at):
        """Numbers of the filters, as they were applied."""
        if at is None:
            return []
        count, version, found = self.bytes[at + 1], self.bytes[at], []
        at += 2 if version == 2 else 8
        for _ in range(count):
            number = self.number(at, 2)
            named = version == 1 or number >= 256
            name, values = (self.number(at + 2, 2) if named else 0), self.number(at + (6 if named else 4), 2)
            found.append(number)
            at += (8 if named else 6) + name + 4 * values
        return found

    def chunked(self, at, shape, kind, filters):
        if self.bytes[at] != 4 or self.bytes[at + 1] != 2:
            raise ValueError("a dataset in chunks was expected")
        flags, rank, width = self.bytes[at + 2 : at + 5]
        sizes = [self.number(at + 5 + width * i, width) for i in range(rank)]
        at += 5 + width * rank
        chunk = tuple(sizes[:-1])
        grid = tuple(-(-n // c) for n, c in zip(shape, chunk))
        out = np.zeros(shape, kind)
        places = self.places(at, flags, int(np.prod(grid)), int(np.prod(chunk)) * kind.itemsize, bool(filters))
        for where, found in zip(np.ndindex(grid), places):
            if found is None:
                continue
            offset, size = found
            data = self.unfiltered(self.bytes[offset : offset + size], filters, kind.itemsize)
            block = np.frombuffer(data, kind).reshape(chunk)
            begin = [w * c for w, c in zip(where, chunk)]
            ends = [min(b + c, n) for b, c, n in zip(begin, chunk, shape)]
            there = tuple(slice(b, e) for b, e in zip(begin, ends))
            out[there] = block[tuple(slice(0, e - b) for b, e in zip(begin, ends))]
        return out

    def places(self, at, flags, count, plain, filtered):
        """Where each chunk lies, and its length."""
        index, at = self.bytes[at], at + 1
        if index == 1:
            if filtered and flags & 2:
                return [(self.number(at + 12, 8), self.number(at, 8))]
            return [(self.number(at, 8), plain)]
        if index == 3:
            return self.fixed_array(self.number(at + 1, 8), count, plain, filtered)
        if index == 4:
            return self.extensible_array(self.number(at + 5, 8), count, plain, filtered)
        raise ValueError(f"chunks are listed in a way that is not read here ({index})")

    def entry(self, at, size, plain, filtered):
        offset = self.number(at, 8)
        if offset == NOWHERE:
            return None
        return (offset, self.number(at + 8, size - 12)) if filtered else (offset, plain)

    def fixed_array(self, at, count, plain, filtered):
        size, bits, block = self.bytes[at + 6], self.bytes[at + 7], self.number(at + 16, 8)
        start, page = block + 14, 1 << bits
        if count <= page:
            return [self.entry(start + size * i, size, plain, filtered) for i in range(count)]
        pages = -(-count // page)
        start += -(-pages // 8) + 4
        return [self.entry(start + size * i + 4 * (i // page), size, plain, filtered) for i in range(count)]

    def extensible_array(self, at, count, plain, filtered):
        size, _, direct, first, least = self.bytes[at + 6 : at + 11]
        block = self.number(at + 60, 8)
        found = [self.entry(block + 14 + size * i, size, plain, filtered) for i in range(min(count, direct))]
        if count <= direct:
            return found
        raise ValueError("too many chunks for what is read here")

    @staticmethod
    def unfiltered(data, filters, item):
        for number in reversed(filters):
            if number == DEFLATE:
                data = zlib.decompress(data)
            elif number == SHUFFLE:
                data = np.frombuffer(data, np.uint8).reshape(item, -1).T.tobytes()
            else:
                raise ValueError(f"filter {number} is not known here")
        return data


def posterior(path):
    """Arrays of the group `posterior` by name."""
    return group(path, "posterior")


def group(path, name):
    """Arrays of a group by name."""
    if h5py:
        with h5py.File(path) as file:
            return {member: data[()] for member, data in file[name].items()}
    return by_numpy(path, name)


def by_numpy(path, name="posterior"):
    """The same without h5py."""
    file = File(path)
    members = file.members(file.members(file.root)[name])
    if not members:
        raise ValueError("a group of many members is not read here: install h5py")
    arrays = {member: file.dataset(at) for member, at in members.items()}
    return {member: array for member, array in arrays.items() if array is not None}
