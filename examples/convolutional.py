"""Images through a convolutional network: with `network=`, rows of X may have any shape.

Kernels by name see the rows flattened, functions see them as they are, and `inverse_transform`
gives the shape back.
"""

from functools import partial

from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder
from dkae.networks import ConvolutionalAutoencoder
from dkae.training import Optimization

X = load_digits().images[:, None].astype("float32") / 16  # (n, 1, 8, 8)
train, test = X[:1400], X[1400:]
model = DeepKernelizedAutoencoder(
    32,
    network=partial(ConvolutionalAutoencoder, channels=(16, 32)),  # or the class itself
    batch_size=100,
    max_iter=10,
    steps_per_epoch=20,
    optimization=Optimization(learning_rate_init=0.01),
    random_state=0,
).fit(train)
images = model.inverse_transform(model.transform(test))
print(f"alignment with the kernel on new images {model.score(test):.4f}")
print(f"images of shape {images.shape}, error {((images - test) ** 2).mean():.4f}")
