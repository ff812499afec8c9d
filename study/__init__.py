"""The distribution dkae-study; a package only so that its tests have names of their own."""
