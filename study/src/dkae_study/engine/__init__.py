"""Plans and runs a study: what is done stays done, what fails does not stop the rest."""
