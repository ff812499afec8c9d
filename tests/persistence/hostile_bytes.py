"""Files of other kinds, and headers that lie, behind a right checksum."""

from __future__ import annotations

import hashlib
import io
import json
import pickle

import numpy as np
import torch

ZEROS = "0" * 64


def with_checksum(header, payload=b""):
    """Return a file with this header, an object or JSON, behind the checksum that it must have."""
    text = header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))
    begin = f'{{"__metadata__":{{"sha256":"{ZEROS}","format":"dkae model 3","state":"null"}}'
    raw = (begin + ("," + text[1:] if text[1:] != "}" else "}")).encode()
    file = len(raw).to_bytes(8, "little") + raw + payload
    return file.replace(ZEROS.encode(), hashlib.sha256(file).hexdigest().encode(), 1)


def tensor(shape, begin=0, end=4, dtype="F32", **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]} | more


HEADERS = {
    "a petabyte": {"a": tensor([2**50 // 4])},
    "a petabyte with its offsets": {"a": tensor([2**48], 0, 2**50)},
    "a product that overflows": {"a": tensor([2**32, 2**32, 2**2])},
    "a product that overflows to four": {"a": tensor([2**62, 4, 1])},
    "a negative size": {"a": tensor([-1])},
    "two negative sizes": {"a": tensor([-1, -1])},
    "a size that is a float": {"a": tensor([1.0])},
    "a size that is true": {"a": tensor([True])},
    "a size that is text": {"a": tensor(["1"])},
    "a shape that is none": {"a": tensor(None)},
    "17 dimensions": {"a": tensor([1] * 17)},
    "nothing of a huge size": {"a": tensor([0, 2**62, 2**62], 0, 0), "b": tensor([1])},
    "nothing of 2^33": {"a": tensor([2**33, 0], 0, 0), "b": tensor([1])},
    "negative offsets": {"a": tensor([1], -4, 0)},
    "offsets the wrong way round": {"a": tensor([1], 4, 0)},
    "three offsets": {"a": tensor([1]) | {"data_offsets": [0, 4, 4]}},
    "offsets beyond the end": {"a": tensor([1], 4, 8)},
    "overlapping tensors": {"a": tensor([1]), "b": tensor([1])},
    "partly overlapping tensors": {"a": tensor([4], dtype="U8"), "b": tensor([2], 2, 4, "U8")},
    "a gap": {"a": tensor([1], 0, 1, "U8"), "b": tensor([1], 3, 4, "U8")},
    "a gap at the beginning": {"a": tensor([3], 1, 4, "U8")},
    "a gap at the end": {"a": tensor([3], 0, 3, "U8")},
    "no tensors for the bytes": {},
    "a tensor at an odd place": {
        "a": tensor([1], 0, 1, "U8"), "b": tensor([1], 1, 3, "F16"), "c": tensor([1], 3, 4, "U8"),
    },
    "an unknown type": {"a": tensor([1], dtype="F4")},
    "a type that is none": {"a": tensor([1], dtype=None)},
    "a type that is a list": {"a": tensor([1], dtype=["F32"])},
    "a tensor with more to say": {"a": tensor([1], more=1)},
    "a tensor with less to say": {"a": {"dtype": "F32", "shape": [1]}},
    "a tensor that is a list": {"a": [1, 2, 3]},
    "a boolean of 7": {"a": tensor([4], dtype="BOOL")},
}  # fmt: skip
TEXTS = {
    "a hundred thousand tensors": json.dumps(
        {str(i): tensor([0], 4 if i else 0, 4) for i in range(100_000)}, separators=(",", ":")
    ),
    "a tensor twice": '{"a":' + json.dumps(tensor([1])) + ',"a":' + json.dumps(tensor([1])) + "}",
    "metadata twice": '{"__metadata__":{}}',
    "a header of open brackets": '{"a":' + "[" * 100_000,
    "a header of nested lists": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    "a header of nested objects": '{"a":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}",
    "a header of a million lists": '{"a":[' + "[]," * 1_000_000 + "[]]}",
    "a size of NaN": '{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}',
    "a size of Infinity": '{"a":{"dtype":"F32","shape":[Infinity],"data_offsets":[0,4]}}',
    "a size of a million digits": '{"a":{"shape":[' + "1" * 1_000_000 + "]}}",
    "a float of a million digits": '{"a":{"shape":[0.' + "1" * 1_000_000 + "]}}",
    "a name of 20 megabytes": '{"' + "a" * 20_000_000 + '":1}',
}


def other_files():
    """Return files of other kinds by name, and no file at all."""
    arrays, module = io.BytesIO(), io.BytesIO()
    np.savez(arrays, a=np.ones(3))
    torch.save({"a": torch.ones(3)}, module)
    return {
        "an empty file": b"",
        "eight bytes": b"\x08" + b"\0" * 7,
        "a header longer than the file": (2**62).to_bytes(8, "little") + b"{}",
        "a header of all 64 bits": b"\xff" * 64,
        "a header of 33 megabytes": (33 * 2**20).to_bytes(8, "little") + b" " * 33 * 2**20,
        "a pickle": pickle.dumps({"a": 1}),
        "a pickle that runs": b"cos\nsystem\n(S'exit 3'\ntR.",
        "an npz": arrays.getvalue(),
        "a module of torch": module.getvalue(),
        "a text": b"hello " * 100,
    }
