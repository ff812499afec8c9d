"""PCA falls out: a linear kernel and a linear network of one layer.

Among all Gram matrices of rank m, the one that aligns best with X Xᵀ is that of the first m
principal components (Eckart and Young). So the codes of a linear network that only aligns
(λ = 1) must reach its alignment, and span the principal subspace.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from dkae import DeepKernelizedAutoencoder
from dkae.metrics import code_gram, kernel_alignment
from dkae.networks import Stack
from dkae.training import Optimization

X = load_digits().data / 16
X = (X - X.mean(axis=0)).astype(np.float32)

model = DeepKernelizedAutoencoder(
    5,
    kernel="linear",
    network=Stack((), output_activation="identity"),
    alignment="frobenius",
    alignment_weight=1,
    max_iter=12,
    decoder_max_iter=0,
    optimization=Optimization(learning_rate_init=0.01),
    random_state=0,
).fit(X)

pca = PCA(5).fit(X)
eigenvalues = np.linalg.eigvalsh(X.T @ X)[::-1]
best = np.sqrt((eigenvalues[:5] ** 2).sum() / (eigenvalues**2).sum())
# Canonical correlations of codes and principal components: all 1 if they span one space.
codes = model.transform(X)
code_space, pca_space = (np.linalg.qr(z)[0] for z in (codes, pca.transform(X)))
correlations = np.linalg.svd(code_space.T @ pca_space, compute_uv=False)

print(f"alignment of the codes         {kernel_alignment(code_gram(codes), X @ X.T):.6f}")
print(f"best that rank 5  can reach    {best:.6f}")
print(f"smallest canonical correlation {correlations.min():.6f}")
