"""The ten lines of the README."""

from dkae import DeepKernelizedAutoencoder
from dkae.datasets import load_mnist20k
from dkae.metrics import centered_alignment_score

mnist = load_mnist20k(scaled=True)
train, test = mnist.data[mnist.train], mnist.data[mnist.test]
model = DeepKernelizedAutoencoder(128, kernel="rbf", random_state=0)
codes = model.fit(train).transform(test)  # φ: 784 pixels to 128 coordinates of kernel space
images = model.inverse_transform(codes)  # φ⁻¹: and back
print(f"alignment {model.score(test):.5f}, centred {centered_alignment_score(model, test):.4f}")
print(f"{codes.shape} codes, reconstruction error {((images - test) ** 2).mean():.4f}")
