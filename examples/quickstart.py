"""The ten lines of the README."""

from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from dkae import DeepKernelizedAutoencoder
from dkae.datasets import load_mnist20k

mnist = load_mnist20k(scaled=True)
train, test = mnist.data[mnist.train], mnist.data[mnist.test]
model = DeepKernelizedAutoencoder(128, kernel="rbf", hidden_layer_sizes=(500,), random_state=0)
codes = model.fit(train).transform(test)
images = model.inverse_transform(codes)
print(f"{codes.shape} codes, alignment with the kernel {model.score(test):.4f}")
print(f"reconstruction error {((images - test) ** 2).mean():.4f}")
pipeline = make_pipeline(FrozenEstimator(model), PCA(32)).fit(train)
denoised = pipeline.inverse_transform(pipeline.transform(test))
print(f"after PCA(32) in kernel space and back {((denoised - test) ** 2).mean():.4f}")
