"""The six lines of the README."""

from dkae import DeepKernelizedAutoencoder
from dkae.datasets import load_mnist20k

mnist = load_mnist20k(scaled=True)
model = DeepKernelizedAutoencoder(128, kernel="rbf", random_state=0).fit(mnist.data[mnist.train])
codes = model.transform(mnist.data[mnist.test])  # φ: 784 pixels to 128 coordinates of kernel space
images = model.inverse_transform(codes)  # φ⁻¹: and back
