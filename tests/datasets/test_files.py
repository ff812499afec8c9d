"""Tests of arrays by name or by file: what is written comes back, what is damaged is named."""

import gzip
import io
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from dkae.datasets import DataFileError, files, load_mnist20k
from dkae.datasets.files import load_dataset, read_array, write_array

ENDINGS = [".npy", ".npz", ".csv"]
ARRAY = np.array([[0.1, -2.0, 3e-30], [4.0, 5.5, 1e30]], dtype=np.float32)
IDX = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 2, 3) + bytes(range(12))

# Each example overwrites the same file, so sharing tmp_path between examples is harmless.
shares_tmp_path = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)
matrices = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)


def read_text(tmp_path, text, name="rows.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_array(str(tmp_path / name))


def read_bytes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return read_array(str(tmp_path / name))


def names(array):
    return [f"x{i}" for i in range(array.shape[1])]


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
@shares_tmp_path
@given(array=hnp.arrays(np.float32, matrices, elements=st.floats(width=32, allow_nan=False)))
def test_float32_comes_back_bit_by_bit(ending, array, tmp_path):
    path = tmp_path / f"array{ending}"
    write_array(path, array, names(array))
    back = read_array(str(path))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()


def test_nine_digits_in_a_csv_are_enough_for_any_float32(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, (1000, 4), dtype=np.uint32)
    array = np.nan_to_num(bits.view(np.float32))
    write_array(tmp_path / "a.csv", array, names(array))
    assert read_array(str(tmp_path / "a.csv")).tobytes() == array.tobytes()


@pytest.mark.parametrize("ending", [".npy", ".npz"])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f8", "f4"])
def test_binary_files_keep_the_type(ending, dtype, tmp_path):
    path = tmp_path / f"array{ending}"
    array = np.arange(6).reshape(2, 3).astype(dtype)
    write_array(path, array, names(array))
    back = read_array(str(path))
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_is_replaced(ending, tmp_path):
    path = tmp_path / f"array{ending}"
    write_array(path, np.zeros((9, 9)), ["zero"] * 9)
    write_array(path, ARRAY, ["a", "b", "c"])
    np.testing.assert_array_equal(read_array(str(path)), ARRAY)


def test_csv_is_written_with_a_header(tmp_path):
    write_array(tmp_path / "a.csv", np.float32([[1, 0.1]]), ["first", "second"])
    written = (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert written == "first,second\n1,0.100000001\n"


@pytest.mark.parametrize("columns", [["0", "1", "2"], ["λ", "größe", "#"], ["a,b", "c", "d"]])
def test_header_is_never_read_as_data(columns, tmp_path):
    write_array(tmp_path / "a.csv", ARRAY, columns)
    np.testing.assert_array_equal(read_array(str(tmp_path / "a.csv")), ARRAY)


# --- .npy and .npz -------------------------------------------------------------------------------


def test_npy_is_a_memmap_that_cannot_be_written_to(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY)
    array = read_array(str(tmp_path / "a.npy"))
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable


def test_npz_array_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", zeros=np.zeros(3), wanted=ARRAY)
    np.testing.assert_array_equal(read_array(f"{tmp_path / 'a.npz'}:wanted"), ARRAY)


def test_npz_of_two_arrays_asks_for_the_name(tmp_path):
    np.savez(tmp_path / "a.npz", first=ARRAY, second=ARRAY)
    with pytest.raises(DataFileError, match=r"2 arrays \(first, second\).*a\.npz:first"):
        read_array(str(tmp_path / "a.npz"))


def test_npz_of_no_array_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz")
    with pytest.raises(DataFileError, match="holds 0 arrays"):
        read_array(str(tmp_path / "a.npz"))


def test_npz_unknown_name_says_what_may_have_been_meant(tmp_path):
    np.savez(tmp_path / "a.npz", first=ARRAY, second=ARRAY)
    with pytest.raises(DataFileError, match=r"did you mean 'first'\?"):
        read_array(f"{tmp_path / 'a.npz'}:fisrt")


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_the_bomb_works(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["objects.npy", "pickle.npy", "objects.npz", "pickle.npz"])
def test_no_pickle_is_loaded(name, tmp_path):
    bomb = Bomb(tmp_path / "exploded")
    if name.startswith("pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(bomb))
    else:
        write = np.save if name.endswith(".npy") else np.savez
        write(tmp_path / name, np.array([[bomb]], dtype=object))
    with pytest.raises(DataFileError, match=name):
        read_array(str(tmp_path / name))
    assert not (tmp_path / "exploded").exists()


# --- .csv ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "1,2\n3,4",
        "a,b\n1,2\n3,4\n",
        '"a","b, with a comma"\n1,2\n3,4\n',
        "\ufeff1,2\n3,4\n",
        "\ufeffa,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "1.0, 2e0\n 3,+4\n",
    ],
)
def test_csv_with_and_without_header(text, tmp_path):
    array = read_text(tmp_path, text)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, [[1, 2], [3, 4]])


@pytest.mark.parametrize(("text", "shape"), [("1\n2\n3\n", (3, 1)), ("1,2,3\n", (1, 3))])
def test_csv_is_always_a_matrix(text, shape, tmp_path):
    assert read_text(tmp_path, text).shape == shape


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,two\n",
        "1,2\n3,\n",
        "1,2\n3\n",
        "a,b\n1;2\n3;4\n",
        "a,b\nc,d\n1,2\n",
        "1,\n3,4\n",
        "1,2\n3,4#5\n",
        "1,2\n#3,4\n",
    ],
    ids=repr,
)
def test_csv_that_is_no_table_of_numbers_is_refused(text, tmp_path):
    with pytest.raises(DataFileError, match=r"rows\.csv is not a table of numbers"):
        read_text(tmp_path, text)


# --- IDX -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t10k-images-idx3-ubyte", "t10k.idx3-ubyte", "images.idx"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_idx_images_are_rows(name, compress, tmp_path):
    array = read_bytes(tmp_path, name, compress(IDX))
    assert array.dtype == np.uint8
    np.testing.assert_array_equal(array, np.arange(12).reshape(2, 6))


def test_idx_labels_are_one_column(tmp_path):
    content = bytes([0, 0, 8, 1]) + struct.pack(">I", 3) + bytes([7, 2, 1])
    np.testing.assert_array_equal(read_bytes(tmp_path, "y-ubyte.gz", content), [[7], [2], [1]])


def test_idx_sizes_are_big_endian(tmp_path):
    content = bytes([0, 0, 8, 2]) + bytes([0, 0, 1, 0]) + bytes([0, 0, 0, 1]) + bytes(256)
    assert read_bytes(tmp_path, "zeros.idx", content).shape == (256, 1)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_counts_more_than_the_rest_of_the_name(ending, tmp_path):
    path = tmp_path / f"images-idx3-ubyte{ending}"
    write_array(path, ARRAY, ["a", "b", "c"])
    np.testing.assert_array_equal(read_array(str(path)), ARRAY)


# --- damaged files -------------------------------------------------------------------------------


def saved(write, array):
    """Return the bytes of an array as NumPy writes it."""
    buffer = io.BytesIO()
    write(buffer, array)
    return buffer.getvalue()


def flipped(content, position):
    return content[:position] + bytes([content[position] ^ 255]) + content[position + 1 :]


NPY, NPZ = saved(np.save, ARRAY), saved(np.savez, ARRAY)
COMPRESSED = saved(np.savez_compressed, np.arange(1000.0))


UNUSABLE = {
    "empty.npy": b"",
    "cut.npy": NPY[:-1],
    "cut_header.npy": NPY[:20],
    "zip.npy": NPZ,
    "text.npy": b"1,2\n3,4\n",
    "empty.npz": b"",
    "cut.npz": NPZ[: len(NPZ) // 2],
    "flipped.npz": flipped(NPZ, NPZ.index(ARRAY.tobytes())),
    "flipped_compressed.npz": flipped(COMPRESSED, 100),
    "array.npz": NPY,
    "text.npz": b"1,2\n3,4\n",
    "latin1.csv": "größe,b\n1,2\n".encode("latin1"),
    "latin1_below.csv": "a,b\n1,ö\n".encode("latin1"),
    "long_field.csv": b"a" * 200_000,
    "binary.csv": NPY,
    "empty.csv": b"",
    "header_only.csv": b"a,b\n",
    "empty.idx": b"",
    "cut.idx": IDX[:-1],
    "no_image.idx": bytes([0, 0, 8, 3]) + struct.pack(">3I", 0, 2, 2),
    "no_dimension.idx": bytes([0, 0, 8, 0, 7]),
    "text.idx": b"hello",
    "array.txt": b"1,2\n",
    "array": b"1,2\n",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_file_is_refused_by_its_name(name, tmp_path):
    with pytest.raises(DataFileError, match=name):
        read_bytes(tmp_path, name, UNUSABLE[name])


@pytest.mark.parametrize("name", ["no.npy", "no.npz", "no.npz:key", "no.csv", "no.idx", "."])
def test_missing_file_is_named(name, tmp_path):
    expected = str(tmp_path / name.partition(":")[0])
    with pytest.raises(FileNotFoundError) as raised:
        read_array(str(tmp_path / name))
    assert expected in str(raised.value)


# --- data sets -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mnist20k():
    return load_mnist20k(scaled=True)


@pytest.fixture
def fake_mnist(monkeypatch):
    """Stand in for the download."""
    bunch = Bunch(data=np.arange(8.0).reshape(4, 2), train=np.arange(3), test=np.array([3]))
    calls = []

    def fetch(**kwargs):
        calls.append(kwargs)
        return bunch

    monkeypatch.setattr(files, "fetch_mnist", fetch)
    return Bunch(bunch=bunch, calls=calls)


def test_digits_are_scaled():
    rows = load_dataset("digits")
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, load_digits().data / 16)


def test_whole_mnist20k(mnist20k):
    np.testing.assert_array_equal(load_dataset("mnist20k"), mnist20k.data)


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_part_of_mnist20k(part, mnist20k):
    rows = load_dataset(f"mnist20k:{part}")
    np.testing.assert_array_equal(rows, mnist20k.data[mnist20k[part]])


def test_mnist_is_scaled(fake_mnist):
    assert load_dataset("mnist") is fake_mnist.bunch.data
    assert fake_mnist.calls == [{"scaled": True}]


def test_part_of_mnist(fake_mnist):
    np.testing.assert_array_equal(load_dataset("mnist:test"), [[6, 7]])


def test_mnist_has_no_validation_part(fake_mnist):
    with pytest.raises(ValueError, match=r"part of mnist='validation'.*'test', 'train'"):
        load_dataset("mnist:validation")


def test_unknown_part_says_what_may_have_been_meant():
    with pytest.raises(ValueError, match=r"'tset' is not known.*did you mean 'test'\?"):
        load_dataset("mnist20k:tset")


def test_data_set_without_parts():
    with pytest.raises(ValueError, match="'digits' has no parts, got 'train'"):
        load_dataset("digits:train")


def test_unknown_data_set_says_what_may_have_been_meant():
    with pytest.raises(ValueError, match=r"data set='digts'.*did you mean 'digits'\?"):
        load_dataset("digts")


def test_read_array_lists_the_data_sets():
    with pytest.raises(FileNotFoundError, match=r"neither a file nor a data set.*mnist20k"):
        read_array("nothing")


def test_read_array_takes_data_sets():
    np.testing.assert_array_equal(read_array("digits"), load_dataset("digits"))


def test_read_array_takes_parts_of_data_sets(fake_mnist):
    np.testing.assert_array_equal(read_array("mnist:test"), [[6, 7]])


def test_file_whose_name_starts_as_a_data_set_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("mnist.npy", ARRAY)
    np.testing.assert_array_equal(read_array("mnist.npy"), ARRAY)
