"""Write the tables of README.md and docs/ from the result files.

A block stands between ``<!-- begin: NAME (make tables) -->`` and ``<!-- end: NAME -->``. `make
tables` writes all of them anew; study/tests/test_documents.py fails where one is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from scripts import benchmark_blocks, large_data_blocks, study_blocks
from scripts.markdown import ROOT

__all__ = ["BLOCKS", "DOCUMENTS", "names_in", "regenerate"]

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

#: What stands in the documents, by the name in its markers.
BLOCKS: dict[str, Callable[[], str]] = {
    "alignment-bias": benchmark_blocks.alignment_bias,
    "alignment-cost": benchmark_blocks.alignment_cost,
    "baselines-curve": benchmark_blocks.baselines_curve,
    "baselines-denoising": benchmark_blocks.baselines_denoising,
    "busy": benchmark_blocks.busy,
    "choose-gamma": benchmark_blocks.choose_gamma,
    "cluster-kernel": benchmark_blocks.cluster_kernel,
    "fit-trace": benchmark_blocks.fit_trace,
    "maps": benchmark_blocks.maps,
    "memory": benchmark_blocks.memory,
    "mnist-recipes": benchmark_blocks.mnist_recipes,
    "learned-map": benchmark_blocks.learned_map,
    "nystroem-quality": benchmark_blocks.nystroem_quality,
    "nystroem-speed": benchmark_blocks.nystroem_speed,
    "quickstart": benchmark_blocks.quickstart,
    "recipe-variants": benchmark_blocks.recipe_variants,
    "recipes": benchmark_blocks.recipes,
    "spectral": benchmark_blocks.spectral,
    "step-memory": benchmark_blocks.step_memory,
    "torture": benchmark_blocks.torture,
    "training-step": benchmark_blocks.training_step,
    "when-cost": benchmark_blocks.when_cost,
    "when-quality": benchmark_blocks.when_quality,
    "whole-steps": benchmark_blocks.whole_steps,
    "chunks": large_data_blocks.chunks,
    "kills": large_data_blocks.kills,
    "million-rows": large_data_blocks.million_rows,
    "out-of-sample": large_data_blocks.out_of_sample,
    "partial-fit": large_data_blocks.partial_fit,
    "processes": large_data_blocks.processes,
    "clipped-noise": study_blocks.clipped_noise,
    "study-clipped": study_blocks.study_clipped,
    "code-space": study_blocks.code_space,
    "flat-middle": study_blocks.flat_middle,
    "sensitivity": study_blocks.sensitivity,
    "study-claims": study_blocks.study_claims,
    "study-components": study_blocks.study_components,
    "study-denoising": study_blocks.study_denoising,
}

_BEGIN, _END = "<!-- begin: {} (make tables) -->", "<!-- end: {} -->"
_MARKER = re.compile(r"<!-- begin: (\S+) .*?-->")


def names_in(text: str) -> list[str]:
    """Return the names of the blocks of a document."""
    return _MARKER.findall(text)


def regenerate(text: str) -> str:
    """Return a document with all of its blocks written anew."""
    for name in names_in(text):
        begin, end = _BEGIN.format(name), _END.format(name)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the block {name} does not stand between {begin!r} and {end!r}")
        if name not in BLOCKS:
            raise ValueError(f"there is no block {name}: choose one of {', '.join(BLOCKS)}")
        text = f"{before}{begin}\n{_written(name)}{end}{after}"
    return text


def _written(name: str) -> str:
    """Return a table; none where a benchmark has not been run since its results were removed."""
    try:
        return BLOCKS[name]()
    except FileNotFoundError:
        return ""


def main() -> None:
    """Write the documents that have changed."""
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        if (new := regenerate(text)) != text:
            path.write_text(new, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
