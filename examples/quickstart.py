"""The ten lines of the README."""

from dkae import DeepKernelizedAutoencoder
from dkae.datasets import load_mnist20k

mnist = load_mnist20k(scaled=True)
train, test = mnist.data[mnist.train], mnist.data[mnist.test]
model = DeepKernelizedAutoencoder(128, kernel="rbf", hidden_layer_sizes=(500,), random_state=0)
codes = model.fit(train).transform(test)  # φ: 784 pixels to 128 coordinates of kernel space
images = model.inverse_transform(codes)  # φ⁻¹: and back
print(f"{codes.shape} codes, alignment with the kernel {model.score(test):.4f}")
print(f"reconstruction error {((images - test) ** 2).mean():.4f}")
