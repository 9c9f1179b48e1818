"""The rules that translate one transaction of the source for a view, and stop the view before it where they cannot. Without I/O."""
