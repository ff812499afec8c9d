"""The experiments of the paper, one file each: networks, measurement, claims, figures, tables."""
