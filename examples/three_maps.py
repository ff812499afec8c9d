"""Three maps of one kernel: exact, from landmark rows, and learned. One interface for all."""

from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA
from dkae.metrics import reconstruction_r2

X = load_digits().data / 16
train, test = X[:1400], X[1400:]

for model in (
    KernelPCA(32, kernel="rbf", random_state=0),
    InvertibleNystroem(32, kernel="rbf", random_state=0),
    DeepKernelizedAutoencoder(32, kernel="rbf", max_iter=5, decoder_max_iter=5, random_state=0),
):
    codes = model.fit(train).transform(test)  # φ: to kernel space
    images = model.inverse_transform(codes)  # φ⁻¹: and back
    print(
        f"{type(model).__name__:26} centred alignment {model.score(test):.4f}, "
        f"R² {reconstruction_r2(test, images):.3f}"
    )
