"""The parts of the pass that translates a file of the source into the view's."""
