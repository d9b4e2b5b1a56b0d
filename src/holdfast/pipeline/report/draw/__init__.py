"""Reports as pictures to hang on a wall."""
