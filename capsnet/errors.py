"""What can be wrong with a drawing or a model. Each message is one sentence that can be shown to whom it concerns."""


class EmptyDrawingError(ValueError):
    """There is nothing to read: no ink at all, or no more than a dot."""


class InvalidDrawingError(ValueError):
    """This is not a drawing: a wrong type, shape, size or number, or a file that holds no picture."""


class ModelError(RuntimeError):
    """A model cannot be found or read; the message says what to do."""
