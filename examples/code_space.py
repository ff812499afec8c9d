"""Lines, means and projections of codes, and what they look like as images.

A linear operation between the encoder and the decoder is a non-linear one on the input (Fig. 2 of
the paper). A small network learns the codes of 3,000 handwritten digits; then noise is taken off,
one digit turns into another, and a class is added to an image and another one subtracted.

    python examples/code_space.py [code_space.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from dkae import DeepKernelizedAutoencoder
from dkae.codespace import class_means, code_pca, combine, interpolate, traverse
from dkae.datasets import load_mnist20k
from dkae.networks import Stack

mnist = load_mnist20k(scaled=True)
X, y = mnist.data[mnist.train][:3000], mnist.target[mnist.train][:3000]
X_test, y_test = mnist.data[mnist.test], mnist.target[mnist.test]
# Chosen by eye for the figure; the numbers on arithmetic below are of all test digits.
three, four, five, eight = (X_test[y_test == d][i] for d, i in ((3, 1), (4, 0), (5, 1), (8, 1)))

model = DeepKernelizedAutoencoder(
    128,
    network=Stack((512,)),
    max_iter=4,
    decoder_max_iter=1,
    input_noise=0.5,  # the encoder has seen noise, which PCA of pixels below has not
    random_state=0,
).fit(X)
# Says which digit an image shows: the class of the nearest training image.
reader = KNeighborsClassifier(1).fit(X, y)


# --- denoising: projection on 32 principal components of the clean codes -------------------------

noise = np.random.default_rng(0).normal(0, 0.5, X_test.shape).astype(np.float32)
noisy = X_test + noise
pipeline = code_pca(model, X, 32)  # fitted once, for any number of noisy sets
denoised = pipeline.inverse_transform(pipeline.transform(noisy))
pixel_pca = PCA(32, random_state=0).fit(X)
projected = pixel_pca.inverse_transform(pixel_pca.transform(noisy))
print("mean squared error of test digits")
for name, images in (
    ("with noise", noisy),
    ("denoised by PCA of pixels", projected),
    ("denoised by PCA of codes", denoised),
):
    print(f"  {name:26} {np.mean((images - X_test) ** 2):.4f}")

# --- a line between two codes, and a walk along a principal direction ----------------------------

line = interpolate(model, three, eight)
walk = traverse(model, X, direction=0, extent=2)
print("class of the nearest training digit")
print("  from a 3 to an 8          ", *reader.predict(line))
print("  along the first direction ", *reader.predict(walk))

# --- arithmetic: the 9s without the 4s, with this 4 ----------------------------------------------

nine = combine(model, [(1, X[y == 9]), (-1, X[y == 4]), (1, four)])
six = combine(model, [(1, X[y == 6]), (-1, X[y == 5]), (1, five)])

# The same on the codes themselves, for all test digits of a class at once.
_, means = class_means(model, X, y)
print("decoded images whose nearest training digit is of the other class")
for minus, plus in ((4, 9), (5, 6)):
    codes = model.transform(X_test[y_test == minus])
    both = (codes, codes + means[plus] - means[minus])
    before, after = (np.mean(reader.predict(model.inverse_transform(c)) == plus) for c in both)
    print(f"  {minus}s + mean {plus} - mean {minus}       {before:.0%} before, {after:.0%} after")


# --- the figure ----------------------------------------------------------------------------------


def draw(ax, image, caption="", sign=""):
    """Draw one digit, ink on paper, and the sign that stands to its right."""
    ax.imshow(image.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xlabel(caption, fontsize=8.5, color="#555555", labelpad=3)
    ax.text(1.125, 0.5, sign, transform=ax.transAxes, ha="center", va="center", fontsize=15)
    ax.set_visible(True)


figure = Figure(figsize=(11, 4.9), facecolor="white")
margins = {"left": 0.185, "right": 0.985, "top": 0.97, "bottom": 0.065}
axes = figure.subplots(4, 9, gridspec_kw=margins | {"wspace": 0.24, "hspace": 0.34})
for ax in axes.flat:
    ax.set(xticks=[], yticks=[], visible=False)
    ax.spines[:].set_color("#bbbbbb")

for i, digit in enumerate((2, 5, 7)):
    k = np.flatnonzero(y_test == digit)[2]
    draw(axes[0, 3 * i], X_test[k], "clean")
    draw(axes[0, 3 * i + 1], noisy[k], "noisy")
    draw(axes[0, 3 * i + 2], denoised[k], "denoised")
for ax, image, t in zip(axes[1], line, np.linspace(0, 1, 9), strict=True):
    draw(ax, image, f"t = {t:g}")
for ax, image, t in zip(axes[2], walk, np.linspace(-2, 2, 9), strict=True):
    draw(ax, image, f"{t:+g} σ".replace("-", "−") if t else "mean")
images = model.inverse_transform(means)
for start, plus, minus, row, result in ((0, 9, 4, four, nine), (5, 6, 5, five, six)):
    draw(axes[3, start], images[plus], f"mean {plus}", "−")
    draw(axes[3, start + 1], images[minus], f"mean {minus}", "+")
    draw(axes[3, start + 2], row, f"this {minus}", "=")
    draw(axes[3, start + 3], result, "decoded")

LABELS = {
    "Denoising": "PCA of the codes",
    "Interpolation": "line between two codes",
    "Traversal": "first principal direction",
    "Arithmetic": "sums of codes",
}
for ax, (name, explanation) in zip(axes[:, 0], LABELS.items(), strict=True):
    middle = (ax.get_position().y0 + ax.get_position().y1) / 2
    figure.text(0.012, middle + 0.004, name, fontsize=12, va="bottom")
    figure.text(0.012, middle - 0.008, explanation, fontsize=8.5, va="top", color="#555555")

path = Path(sys.argv[1] if len(sys.argv) > 1 else "code_space.png")
figure.savefig(path, dpi=160)
print(f"wrote {path}")
