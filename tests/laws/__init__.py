"""Laws that every member of a family passes."""
