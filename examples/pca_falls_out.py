"""PCA falls out: a linear kernel and a linear network of one layer.

Among all Gram matrices of rank m, the one that aligns best with X Xᵀ is that of the first m
principal components (Eckart and Young). So the codes of a linear network that only aligns
(λ = 1) must reach its alignment, and span the principal subspace.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from dkae import DeepKernelizedAutoencoder

X = load_digits().data / 16
X = (X - X.mean(axis=0)).astype(np.float32)

model = DeepKernelizedAutoencoder(
    5,
    kernel="linear",
    hidden_layer_sizes=(),
    output_activation="identity",
    alignment_weight=1,
    learning_rate_init=0.01,
    random_state=0,
).fit(X)

pca = PCA(5).fit(X)
eigenvalues = np.linalg.eigvalsh(X.T @ X)[::-1]
best = np.sqrt((eigenvalues[:5] ** 2).sum() / (eigenvalues**2).sum())
# Canonical correlations of codes and principal components: all 1 if they span one space.
code_space, pca_space = (np.linalg.qr(z)[0] for z in (model.transform(X), pca.transform(X)))
correlations = np.linalg.svd(code_space.T @ pca_space, compute_uv=False)

print(f"alignment of the codes         {model.score(X):.6f}")
print(f"best that rank 5  can reach    {best:.6f}")
print(f"smallest canonical correlation {correlations.min():.6f}")
