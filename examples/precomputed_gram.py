"""A Gram matrix from anywhere, an inverse for it, and cross-validation over it.

scikit-learn's KernelPCA refuses an inverse for a precomputed kernel. Here the matrix is passed to
`fit`; for cross-validation, which hands over parts of X without saying which, a kernel object
recognises the rows by their content.
"""

from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import Precomputed
from dkae.networks import Stack

X = load_digits().data / 16
gram = rbf_kernel(X, gamma=0.2) * (1 + X @ X.T)  # any symmetric matrix of these rows

model = DeepKernelizedAutoencoder(32, network=Stack((128,)), random_state=0)
model.fit(X, gram=gram)
back = model.inverse_transform(model.transform(X))
print(f"alignment {model.score(X, gram=gram):.4f}, error {((back - X) ** 2).mean():.4f}")

search = GridSearchCV(
    model.set_params(kernel=Precomputed(gram, rows=X), max_iter=5, decoder_max_iter=0),
    {"alignment_weight": [0.01, 0.1, 0.5]},
    cv=3,
).fit(X)
for params, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(params, f"held-out alignment {score:.4f}")
