"""What becomes of one transaction of the source in a view, and what stops the view before it. Without I/O."""
