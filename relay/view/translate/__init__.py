"""The parts of the pass that makes a view's file of one of the source's."""
