"""Plans and runs a study: finished runs are kept, and a failure does not stop the rest."""
