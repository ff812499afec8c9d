"""Private helpers: devices, threads, atomic files, checks of parameters, what all fits share."""
