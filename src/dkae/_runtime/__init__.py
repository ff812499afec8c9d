"""What runs underneath: devices, threads, files that appear whole, checks, and manners of a fit."""
