"""The demo: a small model on real digits, trained in minutes, and a page to look at."""
